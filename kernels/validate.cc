#include "kernels/validate.h"

#include <algorithm>
#include <cstdint>
#include <string>

namespace quire::kernels {
namespace {

using std::to_string;

constexpr int32_t kMaxGroup = 32;

// No sequence is longer: positions, and sums of a few of them with a window, fit 32 bits.
constexpr int64_t kMaxTokens = int64_t{1} << 30;

Status CheckHeads(const KvPoolView& pool, const AttentionParams& p) {
  const int32_t kv_heads = pool.layout.kv_heads;
  if (p.q_heads < 1 || p.q_heads % kv_heads != 0 || p.q_heads / kv_heads > kMaxGroup) {
    return Status::Invalid("params.q_heads", "q_heads is " + to_string(p.q_heads) +
                                                 ", must be 1..32 times kv_heads " +
                                                 to_string(kv_heads));
  }
  return Status::Ok();
}

Status CheckMask(const AttentionMask& mask) {
  if (mask.window_left < -1) {
    return Status::Invalid("params.mask.window_left",
                           "window_left is " + to_string(mask.window_left) + ", least is -1");
  }
  if (mask.keep_first < 0) {
    return Status::Invalid("params.mask.keep_first", "keep_first is " + to_string(mask.keep_first));
  }
  return Status::Ok();
}

Status CheckQueryLengths(const BlockTableView& table, const AttentionParams& p) {
  if (p.q_rows < 0) return Status::Invalid("params.q_rows", "q_rows is " + to_string(p.q_rows));
  if (p.cu_q_lens == nullptr) {
    if (p.q_rows == table.rows) return Status::Ok();
    return Status::Invalid("params.q_rows", "q_rows is " + to_string(p.q_rows) + " for " +
                                                to_string(table.rows) +
                                                " sequences of one query each");
  }
  if (p.cu_q_lens[0] != 0 || p.cu_q_lens[table.rows] != p.q_rows) {
    return Status::Invalid("params.cu_q_lens", "cu_q_lens runs from " + to_string(p.cu_q_lens[0]) +
                                                   " to " + to_string(p.cu_q_lens[table.rows]) +
                                                   ", q_rows is " + to_string(p.q_rows));
  }
  for (int64_t i = 0; i < table.rows; ++i) {
    if (p.cu_q_lens[i] > p.cu_q_lens[i + 1]) {
      return Status::Invalid("params.cu_q_lens", "cu_q_lens falls at " + to_string(i));
    }
  }
  return Status::Ok();
}

// Bounds that keep every index of the table inside 63 bits.
Status CheckTableShape(const BlockTableView& table) {
  if (table.rows < 0 || table.rows >= INT32_MAX) {
    return Status::OutOfRange("table.rows", to_string(table.rows) + " rows, must be 0..2^31-2");
  }
  if (table.columns < 0 || table.columns > INT32_MAX) {
    return Status::OutOfRange("table.columns",
                              to_string(table.columns) + " columns, must be 0..2^31-1");
  }
  constexpr int64_t kMaxRowStride = int64_t{1} << 31;
  if (table.row_stride < table.columns || table.row_stride > kMaxRowStride) {
    return Status::Invalid("table.row_stride", "row stride " + to_string(table.row_stride) +
                                                   " of " + to_string(table.columns) +
                                                   " columns, must be that to 2^31");
  }
  return Status::Ok();
}

Status CheckTable(const KvPoolView& pool, const BlockTableView& table) {
  if (Status s = CheckTableShape(table); !s.ok()) return s;
  if (table.rows == 0) return Status::Ok();
  if (table.lens == nullptr) return Status::Invalid("table.lens", "lens is null");
  if (table.columns > 0 && table.ids == nullptr) {
    return Status::Invalid("table.ids", "ids is null");
  }
  const int64_t capacity = std::min(kMaxTokens, table.columns * pool.layout.block_tokens());
  for (int64_t i = 0; i < table.rows; ++i) {
    if (table.lens[i] < 0 || table.lens[i] > capacity) {
      return Status::OutOfRange("table.lens", "length " + to_string(table.lens[i]) +
                                                  " of sequence " + to_string(i) +
                                                  ", the table holds " + to_string(capacity));
    }
  }
  return Status::Ok();
}

Status CheckIds(const KvPoolView& pool, const BlockTableView& table, int64_t row,
                const KeyRange& keys) {
  if (keys.empty()) return Status::Ok();
  const int shift = pool.layout.log2_block_tokens;
  for (int64_t c = keys.begin >> shift; c <= (keys.end - 1) >> shift; ++c) {
    const int32_t id = table.ids[row * table.row_stride + c];
    if (id >= 0 && id < pool.num_blocks) continue;
    return Status::OutOfRange("table.ids", "id " + to_string(id) + " of sequence " +
                                               to_string(row) + " at column " + to_string(c) +
                                               " is visible; the pool has " +
                                               to_string(pool.num_blocks) + " blocks");
  }
  return Status::Ok();
}

Status CheckVisibleIds(const KvPoolView& pool, const BlockTableView& table,
                       const AttentionParams& p) {
  const std::vector<PlanSequence> sequences = MakeSequences(table, p);
  for (size_t i = 0; i < sequences.size(); ++i) {
    const PlanSequence& s = sequences[i];
    if (s.q_tokens == 0) continue;
    const VisibleKeys keys = FindVisibleKeys(
        s, p.mask, s.first_position, s.first_position + s.q_tokens - 1, pool.layout.block_tokens());
    const auto row = static_cast<int64_t>(i);
    if (Status bad = CheckIds(pool, table, row, keys.kept); !bad.ok()) return bad;
    if (Status bad = CheckIds(pool, table, row, keys.rest); !bad.ok()) return bad;
  }
  return Status::Ok();
}

// True if the window hides a key of the prefix from some query.
bool WindowCutsPrefix(const std::vector<PlanSequence>& sequences, const AttentionMask& mask) {
  if (mask.window_left < 0) return false;
  return std::any_of(sequences.begin(), sequences.end(), [&](const PlanSequence& s) {
    return s.q_tokens > 0 && s.first_position + s.q_tokens - 1 > mask.window_left;
  });
}

}  // namespace

Status ValidatePool(const KvPoolView& pool) {
  if (static_cast<int>(pool.memory) > static_cast<int>(MemoryKind::kDevice)) {
    return Status::Invalid("pool.memory",
                           "unknown memory kind " + to_string(static_cast<int>(pool.memory)));
  }
  if (pool.base == nullptr || reinterpret_cast<uintptr_t>(pool.base) % 16 != 0) {
    return Status::Invalid("pool.base", "pool base is null or not 16-byte aligned");
  }
  return pool.layout.Validate(pool.num_blocks, pool.bytes);
}

Status ValidateTables(const KvPoolView& pool, const BlockTableView& table,
                      const AttentionParams& params) {
  if (Status s = ValidatePool(pool); !s.ok()) return s;
  if (Status s = CheckHeads(pool, params); !s.ok()) return s;
  if (Status s = CheckMask(params.mask); !s.ok()) return s;
  if (Status s = CheckTable(pool, table); !s.ok()) return s;
  if (Status s = CheckQueryLengths(table, params); !s.ok()) return s;
  return CheckVisibleIds(pool, table, params);
}

Status ValidatePlan(const KvPoolView& pool, const BlockTableView& table,
                    const AttentionParams& params, const AttentionPlan& plan,
                    std::span<std::byte> workspace) {
  const std::vector<PlanSequence> sequences = MakeSequences(table, params);
  if (plan.inputs != PlanInputs(sequences, MakeShape(pool, params), params.mask)) {
    return Status::Invalid("plan", "the plan was made for " + to_string(plan.sequences) +
                                       " sequences with other lengths, heads or mask");
  }
  if (plan.shared_prefix > 0) {
    Status s = ValidatePrefix(pool, table, plan.shared_prefix, params);
    if (!s.ok()) return s;
  }
  if (static_cast<int64_t>(workspace.size()) < plan.workspace_bytes ||
      reinterpret_cast<uintptr_t>(workspace.data()) % alignof(float) != 0) {
    return Status(StatusCode::kNoSpace, "workspace",
                  "workspace has " + to_string(workspace.size()) + " bytes, the plan needs " +
                      to_string(plan.workspace_bytes) + ", float aligned");
  }
  return Status::Ok();
}

Status ValidatePrefix(const KvPoolView& pool, const BlockTableView& table, int64_t prefix_tokens,
                      const AttentionParams& params) {
  const int64_t n = pool.layout.block_tokens();
  if (prefix_tokens < 1 || prefix_tokens % n != 0) {
    return Status::Invalid("prefix_tokens", "prefix of " + to_string(prefix_tokens) +
                                                " tokens is no multiple of block_tokens " +
                                                to_string(n));
  }
  const std::vector<PlanSequence> sequences = MakeSequences(table, params);
  for (int64_t i = 0; i < table.rows; ++i) {
    const PlanSequence& s = sequences[static_cast<size_t>(i)];
    if (s.kv_end < prefix_tokens || s.first_position < prefix_tokens) {
      return Status::Invalid("prefix_tokens",
                             "sequence " + to_string(i) + " of length " + to_string(s.kv_end) +
                                 " has queries inside the prefix of " + to_string(prefix_tokens));
    }
    const int32_t* ids = table.ids + i * table.row_stride;
    if (!std::equal(ids, ids + prefix_tokens / n, table.ids)) {
      return Status::Invalid(
          "table.ids", "sequence " + to_string(i) + " begins with other blocks than sequence 0");
    }
  }
  return Status::Ok();
}

std::vector<PlanSequence> MakeSequences(const BlockTableView& table,
                                        const AttentionParams& params) {
  std::vector<PlanSequence> sequences(static_cast<size_t>(table.rows));
  for (int64_t i = 0; i < table.rows; ++i) {
    PlanSequence& s = sequences[static_cast<size_t>(i)];
    s.q_row = params.cu_q_lens != nullptr ? params.cu_q_lens[i] : i;
    s.q_tokens = params.cu_q_lens != nullptr ? params.cu_q_lens[i + 1] - s.q_row : 1;
    s.kv_end = table.lens[i];
    s.first_position = s.kv_end - s.q_tokens;
  }
  return sequences;
}

PlanShape MakeShape(const KvPoolView& pool, const AttentionParams& params) {
  return {params.q_heads, pool.layout.kv_heads, pool.layout.head_dim, pool.layout.block_tokens()};
}

Result<AttentionPlan> PlanAttention(const KvPoolView& pool, const BlockTableView& table,
                                    const AttentionParams& params, PlanOptions options, int parts) {
  if (Status s = ValidateTables(pool, table, params); !s.ok()) return s;
  if (options.parts == 0) options.parts = parts;
  return MakePlan(MakeSequences(table, params), MakeShape(pool, params), params.mask, options);
}

Result<AttentionPlan> PlanSharedPrefix(const KvPoolView& pool, const BlockTableView& table,
                                       int64_t prefix_tokens, const AttentionParams& params,
                                       PlanOptions options, int parts) {
  if (Status s = ValidateTables(pool, table, params); !s.ok()) return s;
  if (Status s = ValidatePrefix(pool, table, prefix_tokens, params); !s.ok()) return s;
  const std::vector<PlanSequence> sequences = MakeSequences(table, params);
  if (sequences.empty() || WindowCutsPrefix(sequences, params.mask)) {
    return PlanAttention(pool, table, params, options, parts);
  }
  if (options.parts == 0) options.parts = parts;
  return MakeCascadePlan(sequences, prefix_tokens, MakeShape(pool, params), params.mask, options);
}

}  // namespace quire::kernels
