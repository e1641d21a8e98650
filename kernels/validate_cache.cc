#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "kernels/hash.h"
#include "kernels/validate.h"

namespace quire::kernels {
namespace {

using std::to_string;

// Open addressing over non-negative keys; sized once for `count` insertions.
class SmallIntegerSet {
 public:
  explicit SmallIntegerSet(size_t count)
      : mask_(std::bit_ceil(2 * count + 2) - 1), keys_(mask_ + 1, -1) {}

  // False if it was there.
  bool Insert(int64_t key) {
    size_t at = Mix64(static_cast<uint64_t>(key)) & mask_;
    while (keys_[at] != -1) {
      if (keys_[at] == key) return false;
      at = (at + 1) & mask_;
    }
    keys_[at] = key;
    return true;
  }

  bool Contains(int64_t key) const {
    size_t at = Mix64(static_cast<uint64_t>(key)) & mask_;
    while (keys_[at] != -1 && keys_[at] != key) at = (at + 1) & mask_;
    return keys_[at] == key;
  }

 private:
  size_t mask_;
  std::vector<int64_t> keys_;
};

Status CheckId(const char* argument, size_t index, int32_t id, const KvPoolView& pool) {
  if (id >= 0 && id < pool.num_blocks) return Status::Ok();
  return Status::OutOfRange(argument, "block " + to_string(id) + " at " + to_string(index) +
                                          ", the pool has " + to_string(pool.num_blocks) +
                                          " blocks");
}

Status CheckRowTensors(const KvPoolView& pool, const KvRows& rows, int64_t tokens) {
  if (tokens > 0 && (rows.k == nullptr || rows.v == nullptr)) {
    return Status::Invalid(rows.k == nullptr ? "rows.k" : "rows.v", "rows are null");
  }
  if (rows.dtype != DType::kF32 && rows.dtype != DType::kF16 && rows.dtype != DType::kBF16) {
    return Status::Invalid("rows.dtype", "rows are fp32, fp16 or bf16");
  }
  if (rows.layer < 0 || rows.layer >= pool.layout.layers) {
    return Status::OutOfRange("rows.layer", "layer is " + to_string(rows.layer) +
                                                ", the group has " + to_string(pool.layout.layers));
  }
  if (std::min({rows.k_token_stride, rows.k_head_stride, rows.v_token_stride, rows.v_head_stride}) <
      0) {
    return Status::Invalid("rows.k_token_stride", "negative stride");
  }
  return Status::Ok();
}

Status CheckWriteScales(const KvPoolView& pool, const KvRows& rows) {
  const ScaleKind kind = pool.layout.scale_kind;
  if (kind != ScaleKind::kPerTensor && kind != ScaleKind::kPerHead) return Status::Ok();
  const int count = kind == ScaleKind::kPerHead ? pool.layout.kv_heads : 1;
  const auto check = [count](const char* argument, const float* scales) {
    if (scales == nullptr) return Status::Invalid(argument, "layout needs scales");
    for (int h = 0; h < count; ++h) {
      if (!(scales[h] > 0) || scales[h] > 3e38f) {
        return Status::Invalid(argument, "scale " + to_string(h) + " is not positive and finite");
      }
    }
    return Status::Ok();
  };
  if (Status s = check("rows.k_scale", rows.k_scale); !s.ok()) return s;
  return check("rows.v_scale", rows.v_scale);
}

Status CheckTargets(const KvPoolView& pool, const TokenTargets& targets) {
  if (targets.tokens < 0 || (targets.tokens > 0 && targets.slots == nullptr)) {
    return Status::Invalid("targets.slots", "slots are null or tokens negative");
  }
  const int64_t limit = pool.num_blocks * pool.layout.block_tokens();
  SmallIntegerSet seen(static_cast<size_t>(targets.tokens));
  for (int64_t i = 0; i < targets.tokens; ++i) {
    const int64_t slot = targets.slots[i];
    if (slot < 0) continue;
    if (slot >= limit) {
      return Status::OutOfRange("targets.slots", "target " + to_string(slot) + " of token " +
                                                     to_string(i) + ", the pool has " +
                                                     to_string(limit) + " slots");
    }
    if (!seen.Insert(slot)) {
      return Status::Invalid(
          "targets.slots",
          "target " + to_string(slot) + " is given twice, again by token " + to_string(i));
    }
  }
  return Status::Ok();
}

bool SameContent(const PagedKvLayout& a, const PagedKvLayout& b) {
  return a.dtype == b.dtype && a.scale_kind == b.scale_kind && a.layers == b.layers &&
         a.kv_heads == b.kv_heads && a.head_dim == b.head_dim &&
         a.log2_block_tokens == b.log2_block_tokens;
}

}  // namespace

Status ValidateWrite(const KvPoolView& pool, const KvRows& rows, const TokenTargets& targets) {
  if (Status s = ValidatePool(pool); !s.ok()) return s;
  if (Status s = CheckRowTensors(pool, rows, targets.tokens); !s.ok()) return s;
  if (Status s = CheckWriteScales(pool, rows); !s.ok()) return s;
  return CheckTargets(pool, targets);
}

Status ValidateMerge(const MergeParams& p) {
  if (p.states < 0 || p.rows < 0 || p.heads < 1 || p.head_dim < 1) {
    return Status::Invalid("params", to_string(p.states) + " states of " + to_string(p.rows) +
                                         " rows, " + to_string(p.heads) + " heads, head_dim " +
                                         to_string(p.head_dim));
  }
  if (p.rows == 0) return Status::Ok();
  if (p.out == nullptr) return Status::Invalid("params.out", "out is null");
  if (p.states > 0 && (p.partial_out == nullptr || p.partial_lse == nullptr)) {
    return Status::Invalid(p.partial_out == nullptr ? "params.partial_out" : "params.partial_lse",
                           "partial states are null");
  }
  if (p.out_dtype != DType::kF32 && p.out_dtype != DType::kF16 && p.out_dtype != DType::kBF16) {
    return Status::Invalid("params.out_dtype", "out is fp32, fp16 or bf16");
  }
  return Status::Ok();
}

Status ValidateCopies(const KvPoolView& pool, std::span<const CopyOrder> orders) {
  if (Status s = ValidatePool(pool); !s.ok()) return s;
  for (size_t i = 0; i < orders.size(); ++i) {
    if (Status s = CheckId("orders.source", i, orders[i].source, pool); !s.ok()) return s;
    if (Status s = CheckId("orders.destination", i, orders[i].destination, pool); !s.ok()) return s;
    if (orders[i].tokens < 0 || orders[i].tokens > pool.layout.block_tokens()) {
      return Status::OutOfRange("orders.tokens", to_string(orders[i].tokens) + " tokens in order " +
                                                     to_string(i) + ", a block has " +
                                                     to_string(pool.layout.block_tokens()));
    }
  }
  return Status::Ok();
}

Status ValidateIds(const KvPoolView& pool, std::span<const int32_t> ids, bool refuse_repeated,
                   size_t bytes) {
  if (Status s = ValidatePool(pool); !s.ok()) return s;
  const int64_t needed = static_cast<int64_t>(ids.size()) * pool.layout.content_bytes();
  if (static_cast<int64_t>(bytes) != needed) {
    return Status(StatusCode::kNoSpace, "bytes",
                  to_string(ids.size()) + " blocks take " + to_string(needed) + " bytes, not " +
                      to_string(bytes));
  }
  SmallIntegerSet seen(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    if (Status s = CheckId("ids", i, ids[i], pool); !s.ok()) return s;
    if (!seen.Insert(ids[i]) && refuse_repeated) {
      return Status::Invalid("ids", "block " + to_string(ids[i]) + " is written twice");
    }
  }
  return Status::Ok();
}

Status ValidateTransfer(const KvPoolView& source, const KvPoolView& destination,
                        std::span<const BlockPair> pairs) {
  if (Status s = ValidatePool(source); !s.ok()) return s;
  if (Status s = ValidatePool(destination); !s.ok()) return s;
  if (!SameContent(source.layout, destination.layout)) {
    return Status::Invalid("destination.layout", "the pools hold blocks of different shape: id " +
                                                     to_string(source.layout.id) + " and " +
                                                     to_string(destination.layout.id));
  }
  SmallIntegerSet written(pairs.size());
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (Status s = CheckId("pairs.source", i, pairs[i].source, source); !s.ok()) return s;
    if (Status s = CheckId("pairs.destination", i, pairs[i].destination, destination); !s.ok()) {
      return s;
    }
    if (!written.Insert(pairs[i].destination)) {
      return Status::Invalid("pairs.destination",
                             "block " + to_string(pairs[i].destination) + " is written twice");
    }
  }
  if (source.base != destination.base) return Status::Ok();
  for (const BlockPair& pair : pairs) {
    if (written.Contains(pair.source)) {
      return Status::Invalid("pairs.source",
                             "block " + to_string(pair.source) + " is both read and written");
    }
  }
  return Status::Ok();
}

Status ValidateChecksums(const KvPoolView& pool, std::span<const ChecksumOrder> orders,
                         size_t sums) {
  if (Status s = ValidatePool(pool); !s.ok()) return s;
  if (sums != orders.size()) {
    return Status(StatusCode::kNoSpace, "sums",
                  to_string(orders.size()) + " orders but room for " + to_string(sums) + " sums");
  }
  for (size_t i = 0; i < orders.size(); ++i) {
    if (Status s = CheckId("orders.block", i, orders[i].block, pool); !s.ok()) return s;
    if (orders[i].slot_begin < 0 || orders[i].slot_begin > orders[i].slot_end ||
        orders[i].slot_end > pool.layout.block_tokens()) {
      return Status::OutOfRange("orders.slot_end", "slots " + to_string(orders[i].slot_begin) +
                                                       ".." + to_string(orders[i].slot_end) +
                                                       " in order " + to_string(i));
    }
  }
  return Status::Ok();
}

}  // namespace quire::kernels
