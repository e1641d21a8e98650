// Append: many query rows, so a tile of keys is read once for 64 of them.
//
// Four warps hold 16 query rows each; together they load four tiles, 64 tokens, per stage of a
// two-stage pipeline that they share. Used for prefill, chunks on a cached prefix, drafts and
// shared prefixes: every item with more than 16 rows.
#ifndef QUIRE_KERNELS_CUDA_APPEND_CUH_
#define QUIRE_KERNELS_CUDA_APPEND_CUH_

#include "kernels/cuda/output.cuh"

namespace quire::kernels::QUIRE_SIMT {

constexpr int kAppendWarps = 4;
constexpr int kAppendThreads = kAppendWarps * kWarpLanes;
constexpr int kAppendRows = kAppendWarps * kWarpRows;
constexpr int kStageTokens = kAppendWarps * kTileTokens;

template <typename T>
struct AppendShared {
  static constexpr int kStages = 2;
  static constexpr int kStageBytes = kAppendWarps * T::kTileBytes;
  static constexpr int kPipeline = kStages * kStageBytes;
  static constexpr int kBytes = kPipeline + kAppendWarps * T::kQueryBytes;
  // Tiles per softmax step: as many as registers allow.
  static constexpr int kTilesAtOnce = T::kDim > 64 && T::kDim < 128 ? 2 : 1;
};

template <typename T>
SIMT_DEVICE void LoadStage(const AttentionArgs& args, const AttentionItem& item, int begin,
                           std::byte* stage) {
  LoadTile<T>(args, RunOf(args, item, KvHead(args)), begin + Warp() * kTileTokens,
              stage + Warp() * T::kTileBytes);
}

template <typename T>
SIMT_DEVICE void AttendStage(const AttentionArgs& args, const AttentionItem& item,
                             const WarpQuery<T>& query, const std::byte* stage, int begin,
                             Accumulator<T>& acc) {
  constexpr int kAtOnce = AppendShared<T>::kTilesAtOnce;
  SIMT_NO_UNROLL
  for (int t = 0; t < kAppendWarps; t += kAtOnce) {
    const int key = begin + t * kTileTokens;
    if (key >= item.kv_end) return;
    AttendTiles<T, kAtOnce>(args, query, stage + t * T::kTileBytes, key, acc);
  }
}

template <typename T>
SIMT_DEVICE void AppendTiles(const AttentionArgs& args, const AttentionItem& item,
                             const WarpQuery<T>& query, bool has_rows, Accumulator<T>& acc) {
  std::byte* const stages = SharedMemory();
  LoadStage<T>(args, item, item.kv_begin, stages);
  CommitCopies();
  int stage = 0;
  for (int key = item.kv_begin; key < item.kv_end; key += kStageTokens, stage ^= 1) {
    if (key + kStageTokens < item.kv_end) {
      LoadStage<T>(args, item, key + kStageTokens,
                   stages + (stage ^ 1) * AppendShared<T>::kStageBytes);
    }
    CommitCopies();
    WaitCopies<1>();
    SyncCta();
    if (has_rows) {
      AttendStage(args, item, query, stages + stage * AppendShared<T>::kStageBytes, key, acc);
    }
    SyncCta();  // before this stage is loaded again
  }
  WaitCopies<0>();
}

// This warp's share of the memory of the pipeline, to pass rows through, and behind them what to
// multiply each with.
template <typename T>
SIMT_DEVICE float* RowsOf() {
  constexpr int kBytes = AppendShared<T>::kPipeline / kAppendWarps;
  static_assert(kWarpRows * (T::kDim + 1) * 4 <= kBytes);
  return reinterpret_cast<float*>(SharedMemory() + Warp() * kBytes);
}

template <typename T>
SIMT_DEVICE float* FactorsOf() {
  return RowsOf<T>() + kWarpRows * T::kDim;
}

// Outputs go to memory as they are: all registers are taken while they live.
template <typename T>
SIMT_DEVICE void ShareRows(const AttentionArgs& args, const AttentionItem& item, int kv_head,
                           int first_row, Accumulator<T>& acc) {
  SIMT_UNROLL
  for (int r = 0; r < 2; ++r) {
    float* to = RowsOf<T>() + (Lane() / 4 + 8 * r) * T::kDim;
    SIMT_UNROLL
    for (int n = 0; n < T::kDim / 8; ++n) {
      to[T::OutDim(n, 0)] = acc.out[n][2 * r];
      to[T::OutDim(n, 1)] = acc.out[n][2 * r + 1];
    }
  }
  SIMT_UNROLL
  for (int r = 0; r < 2; ++r) {
    const float sum = QuadSum(acc.sum[r]);
    const int row = Lane() / 4 + 8 * r;
    if (Lane() % 4 != 0 || first_row + row >= item.q_tokens * args.group) continue;
    const RowTarget target = TargetOf(args, item, kv_head, first_row + row);
    const RowOutput out =
        FinishRow(args, item, RuleOf(args, kv_head), target.head, acc.max[r], sum);
    StoreLse(args, target, out.lse);
    FactorsOf<T>()[row] = (acc.v_unit > 0 ? acc.v_unit : 1.0f) * out.factor;
  }
  SyncWarp();
}

template <typename T>
SIMT_DEVICE void StoreRows(const AttentionArgs& args, const AttentionItem& item, int kv_head,
                           int first_row) {
  const int rows = item.q_tokens * args.group - first_row;
  for (int row = 0; row < kWarpRows && row < rows; ++row) {
    const RowTarget target = TargetOf(args, item, kv_head, first_row + row);
    const float factor = FactorsOf<T>()[row];
    for (int dim = Lane(); dim < T::kDim; dim += kWarpLanes) {
      StoreOut(args, target, dim, RowsOf<T>()[row * T::kDim + dim] * factor);
    }
  }
}

template <typename T>
SIMT_KERNEL void SIMT_BOUNDS(kAppendThreads, T::kRegisters) AppendKernel(const AttentionArgs args) {
  const int64_t part = CtaIndex() / args.layout.kv_heads;
  for (int i = args.part_begin[part]; i < args.part_begin[part + 1]; ++i) {
    const AttentionItem& item = args.items[i];  // read again after the loop
    const int rows = item.q_tokens * args.group;
    for (int first = 0; first < rows; first += kAppendRows) {
      const int own = first + Warp() * kWarpRows;
      WarpQuery<T> query;
      Prepare(args, item, KvHead(args), own,
              SharedMemory() + AppendShared<T>::kPipeline + Warp() * T::kQueryBytes,
              SharedMemory() + Warp() * T::kTileBytes, query);
      Accumulator<T> acc;
      Clear(acc);
      AppendTiles(args, item, query, own < rows, acc);
      ShareRows(args, item, KvHead(args), own, acc);
      StoreRows<T>(args, item, KvHead(args), own);
      SyncCta();  // before the pipeline runs over the rows
    }
  }
}

}  // namespace quire::kernels::QUIRE_SIMT

#endif  // QUIRE_KERNELS_CUDA_APPEND_CUH_
