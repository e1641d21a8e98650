#include "kernels/cpu/cpu_backend.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/attention.h"
#include "kernels/cpu/checksum.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/encode.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/dtype.h"
#include "kernels/guard.h"
#include "kernels/validate.h"

namespace quire::kernels::cpu {
namespace {

constexpr int kMaxThreads = 256;
constexpr int64_t kTokensPerWriteTask = 16;

// One K or V row of one token and head into its slot. Returns NaN inputs.
int64_t WriteRow(const KvPoolView& pool, const KvRows& rows, bool is_v, int64_t token, int64_t head,
                 int64_t target) {
  const PagedKvLayout& layout = pool.layout;
  const int64_t token_stride = is_v ? rows.v_token_stride : rows.k_token_stride;
  const int64_t head_stride = is_v ? rows.v_head_stride : rows.k_head_stride;
  const int64_t from = (token * token_stride + head * head_stride) * ElementBytes(rows.dtype);
  const std::byte* row = static_cast<const std::byte*>(is_v ? rows.v : rows.k) + from;
  const float* scales = is_v ? rows.v_scale : rows.k_scale;
  const auto count = static_cast<size_t>(layout.head_dim);
  const int64_t block = target >> layout.log2_block_tokens;
  const int64_t slot = target & (layout.block_tokens() - 1);
  float scale = 1.0f;
  if (layout.scale_kind == ScaleKind::kPerTensor) scale = scales[0];
  if (layout.scale_kind == ScaleKind::kPerHead) scale = scales[head];
  if (layout.scale_kind == ScaleKind::kPerToken) {
    const float top = layout.dtype == DType::kE4M3 ? kE4m3Max : kInt8Max;
    scale = LargestFinite(rows.dtype, row, count) / top;
    if (!(scale > 0)) scale = 1.0f;
    reinterpret_cast<float*>(pool.base)[layout.ScaleOffset(block, rows.layer, head, is_v, slot)] =
        scale;
  }
  std::byte* to = pool.base + layout.RowOffset(block, rows.layer, head, is_v, slot) *
                                  ElementBytes(layout.dtype);
  return EncodeRow(rows.dtype, row, layout.dtype, to, count, scale);
}

// All heads of a token; a negative target is skipped. Returns NaN inputs.
int64_t WriteToken(const KvPoolView& pool, const KvRows& rows, int64_t token, int64_t target) {
  int64_t nans = 0;
  for (int64_t head = 0; target >= 0 && head < pool.layout.kv_heads; ++head) {
    nans += WriteRow(pool, rows, false, token, head, target);
    nans += WriteRow(pool, rows, true, token, head, target);
  }
  return nans;
}

// One (row, head) of dense partial states.
void MergeDense(const MergeParams& p, int64_t row, int64_t head, AttentionScratch& scratch) {
  const int64_t at = row * p.heads + head;
  for (int64_t s = 0; s < p.states; ++s) {
    const int64_t from = s * p.rows * p.heads + at;
    scratch.merge_outs[static_cast<size_t>(s)] = p.partial_out + from * p.head_dim;
    scratch.merge_lses[static_cast<size_t>(s)] = p.partial_lse[from];
  }
  MergeCell cell;
  cell.outs = scratch.merge_outs.data();
  cell.lses = scratch.merge_lses.data();
  cell.states = p.states;
  cell.head_dim = p.head_dim;
  cell.sink = p.sinks != nullptr ? p.sinks + head : nullptr;
  cell.out = static_cast<std::byte*>(p.out) + at * p.head_dim * ElementBytes(p.out_dtype);
  cell.out_dtype = p.out_dtype;
  cell.lse = p.lse != nullptr ? p.lse + at : nullptr;
  Merge(cell);
}

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(int threads) : threads_(threads), scratch_(static_cast<size_t>(threads)) {}

  std::string_view name() const override { return "cpu"; }

 private:
  int Parts(const KvPoolView&) const override { return threads_.threads(); }

  Status DoWrite(const KvPoolView& pool, const KvRows& rows, const TokenTargets& targets,
                 int64_t* nan_inputs) override {
    std::atomic<int64_t> nans{0};
    const int64_t tasks = (targets.tokens + kTokensPerWriteTask - 1) / kTokensPerWriteTask;
    threads_.Run(tasks, [&](int64_t task, int) {
      const int64_t end = std::min(targets.tokens, (task + 1) * kTokensPerWriteTask);
      int64_t bad = 0;
      for (int64_t token = task * kTokensPerWriteTask; token < end; ++token) {
        bad += WriteToken(pool, rows, token, targets.slots[token]);
      }
      if (bad > 0) nans.fetch_add(bad, std::memory_order_relaxed);
    });
    if (nan_inputs != nullptr) *nan_inputs = nans.load();
    return Status::Ok();
  }

  Status DoAttention(const KvPoolView& pool, const BlockTableView& table,
                     const AttentionParams& params, const AttentionPlan& plan,
                     std::span<std::byte> workspace) override {
    AttentionCall call{pool, table, params, plan};
    call.partial_out = reinterpret_cast<float*>(workspace.data());
    const int64_t cells = plan.partial_rows * params.q_heads;
    if (cells > 0) call.partial_lse = call.partial_out + cells * pool.layout.head_dim;
    SetPositions(table, params);
    call.positions = positions_.data();
    const std::vector<AttentionTask> tasks = MakeTasks(call, threads_.threads());
    ReserveScratch(call, tasks);
    threads_.Run(static_cast<int64_t>(tasks.size()), [&](int64_t task, int worker) {
      Attend(call, tasks[static_cast<size_t>(task)], scratch_[static_cast<size_t>(worker)]);
    });
    threads_.Run(static_cast<int64_t>(plan.merges.size()), [&](int64_t merge, int worker) {
      MergePlanned(call, merge, scratch_[static_cast<size_t>(worker)]);
    });
    return Status::Ok();
  }

  Status DoMerge(const MergeParams& p) override {
    for (AttentionScratch& scratch : scratch_) scratch.Reserve({.merge_states = p.states});
    threads_.Run(p.rows, [&](int64_t row, int worker) {
      for (int64_t head = 0; head < p.heads; ++head) {
        MergeDense(p, row, head, scratch_[static_cast<size_t>(worker)]);
      }
    });
    return Status::Ok();
  }

  Status DoCopy(const KvPoolView& pool, std::span<const CopyOrder> orders) override {
    const std::vector<size_t> cuts = CutIntoWaves(orders);
    for (size_t wave = 0; wave + 1 < cuts.size(); ++wave) {
      const auto part = orders.subspan(cuts[wave], cuts[wave + 1] - cuts[wave]);
      ForEach(part.size(), [&](size_t i) {
        if (part[i].source == part[i].destination) return;
        CopyBlock(pool, part[i].source, pool, part[i].destination, part[i].tokens);
      });
    }
    return Status::Ok();
  }

  Status DoGather(const KvPoolView& pool, std::span<const int32_t> ids,
                  std::span<std::byte> destination) override {
    const auto bytes = static_cast<size_t>(pool.layout.content_bytes());
    ForEach(ids.size(),
            [&](size_t i) { GatherBlock(pool, ids[i], destination.data() + i * bytes); });
    return Status::Ok();
  }

  Status DoScatter(const KvPoolView& pool, std::span<const int32_t> ids,
                   std::span<const std::byte> source) override {
    const auto bytes = static_cast<size_t>(pool.layout.content_bytes());
    ForEach(ids.size(), [&](size_t i) { ScatterBlock(pool, ids[i], source.data() + i * bytes); });
    return Status::Ok();
  }

  Status DoTransfer(const KvPoolView& source, const KvPoolView& destination,
                    std::span<const BlockPair> pairs) override {
    ForEach(pairs.size(), [&](size_t i) {
      CopyBlock(source, pairs[i].source, destination, pairs[i].destination,
                source.layout.block_tokens());
    });
    return Status::Ok();
  }

  Status DoChecksum(const KvPoolView& pool, uint64_t seed, std::span<const ChecksumOrder> orders,
                    std::span<ChecksumSums> sums) override {
    ForEach(orders.size(), [&](size_t i) { sums[i] = ChecksumBlock(pool, seed, orders[i]); });
    return Status::Ok();
  }

  template <typename Body>
  void ForEach(size_t count, const Body& body) {
    threads_.Run(static_cast<int64_t>(count),
                 [&body](int64_t i, int) { body(static_cast<size_t>(i)); });
  }

  void ReserveScratch(const AttentionCall& call, const std::vector<AttentionTask>& tasks) {
    AttentionScratch::Sizes sizes;
    sizes.head_dim = call.pool.layout.head_dim;
    sizes.block_tokens = call.pool.layout.block_tokens();
    for (const AttentionTask& task : tasks) {
      sizes.rows = std::max<int64_t>(sizes.rows, task.item->q_tokens * call.group());
      sizes.heads = std::max<int64_t>(sizes.heads, task.heads);
    }
    for (const PlanMerge& merge : call.plan.merges) {
      const int64_t states = merge.last_part - merge.first_part;
      sizes.merge_states = std::max(sizes.merge_states, states);
    }
    for (AttentionScratch& scratch : scratch_) scratch.Reserve(sizes);
  }

  void SetPositions(const BlockTableView& table, const AttentionParams& params) {
    positions_.resize(static_cast<size_t>(params.q_rows));
    for (const PlanSequence& s : MakeSequences(table, params)) {
      for (int64_t i = 0; i < s.q_tokens; ++i) {
        positions_[static_cast<size_t>(s.q_row + i)] = s.first_position + i;
      }
    }
  }

  ThreadPool threads_;
  std::vector<AttentionScratch> scratch_;
  std::vector<int64_t> positions_;
};

}  // namespace

Result<std::unique_ptr<Backend>> MakeCpuBackend(int threads) {
  if (threads < 1 || threads > kMaxThreads) {
    return Status::Invalid("options.threads",
                           "threads is " + std::to_string(threads) + ", must be 1..256");
  }
  return NoThrow("CreateBackend", [&]() -> Result<std::unique_ptr<Backend>> {
    return std::unique_ptr<Backend>(std::make_unique<CpuBackend>(threads));
  });
}

}  // namespace quire::kernels::cpu
