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
SIMT_DEVICE void LoadStage(const AttentionArgs& args, const KvRun& run, int begin,
                           std::byte* stage) {
  LoadTile<T>(args, run, begin + Warp() * kTileTokens, stage + Warp() * T::kTileBytes);
}

template <typename T>
SIMT_DEVICE void AttendStage(const AttentionArgs& args, const KvRun& run, const WarpQuery<T>& query,
                             const std::byte* stage, int begin, Accumulator<T>& acc) {
  constexpr int kAtOnce = AppendShared<T>::kTilesAtOnce;
  SIMT_NO_UNROLL
  for (int t = 0; t < kAppendWarps; t += kAtOnce) {
    const int key = begin + t * kTileTokens;
    if (key >= run.end) return;
    AttendTiles<T, kAtOnce>(args, query, stage + t * T::kTileBytes, key, acc);
  }
}

template <typename T>
SIMT_DEVICE void AppendTiles(const AttentionArgs& args, const KvRun& run, const WarpQuery<T>& query,
                             int begin, bool has_rows, Accumulator<T>& acc) {
  std::byte* const stages = SharedMemory();
  LoadStage<T>(args, run, begin, stages);
  CommitCopies();
  int stage = 0;
  for (int key = begin; key < run.end; key += kStageTokens, stage ^= 1) {
    if (key + kStageTokens < run.end) {
      LoadStage<T>(args, run, key + kStageTokens,
                   stages + (stage ^ 1) * AppendShared<T>::kStageBytes);
    }
    CommitCopies();
    WaitCopies<1>();
    SyncCta();
    if (has_rows) {
      AttendStage(args, run, query, stages + stage * AppendShared<T>::kStageBytes, key, acc);
    }
    SyncCta();  // before this stage is loaded again
  }
  WaitCopies<0>();
}

// This warp's share of the memory of the pipeline, to pass rows through.
template <typename T>
SIMT_DEVICE float* RowsOf() {
  constexpr int kBytes = AppendShared<T>::kPipeline / kAppendWarps;
  static_assert(kWarpRows * T::kDim * 4 <= kBytes);
  return reinterpret_cast<float*>(SharedMemory() + Warp() * kBytes);
}

template <typename T>
SIMT_DEVICE void ShareRows(const AttentionArgs& args, const AttentionItem& item, int kv_head,
                           int first_row, Accumulator<T>& acc) {
  const float v_unit = acc.v_unit > 0 ? acc.v_unit : 1.0f;
  SIMT_UNROLL
  for (int r = 0; r < 2; ++r) {
    const float sum = QuadSum(acc.sum[r]);
    const int row = Lane() / 4 + 8 * r;
    if (first_row + row >= item.q_tokens * args.group) continue;
    const RowTarget target = TargetOf(args, item, kv_head, first_row + row);
    const RowOutput out =
        FinishRow(args, item, RuleOf(args, kv_head), target.head, acc.max[r], sum);
    if (Lane() % 4 == 0) StoreLse(args, target, out.lse);
    SIMT_UNROLL
    for (int n = 0; n < T::kDim / 8; ++n) {
      float* to = RowsOf<T>() + row * T::kDim;
      to[T::OutDim(n, 0)] = acc.out[n][2 * r] * v_unit * out.factor;
      to[T::OutDim(n, 1)] = acc.out[n][2 * r + 1] * v_unit * out.factor;
    }
  }
  SyncWarp();
}

template <typename T>
SIMT_DEVICE void StoreRows(const AttentionArgs& args, const AttentionItem& item, int kv_head,
                           int first_row) {
  const int rows = item.q_tokens * args.group - first_row;
  for (int row = 0; row < kWarpRows && row < rows; ++row) {
    const RowTarget target = TargetOf(args, item, kv_head, first_row + row);
    for (int dim = Lane(); dim < T::kDim; dim += kWarpLanes) {
      StoreOut(args, target, dim, RowsOf<T>()[row * T::kDim + dim]);
    }
  }
}

template <typename T>
SIMT_KERNEL void SIMT_BOUNDS(kAppendThreads, T::kRegisters) AppendKernel(const AttentionArgs args) {
  const int64_t part = CtaIndex() / args.layout.kv_heads;
  for (int i = args.part_begin[part]; i < args.part_begin[part + 1]; ++i) {
    const AttentionItem& item = args.items[i];  // read again after the loop
    const KvRun run = RunOf(args, item, KvHead(args));
    const int rows = item.q_tokens * args.group;
    for (int first = 0; first < rows; first += kAppendRows) {
      const int own = first + Warp() * kWarpRows;
      WarpQuery<T> query;
      Prepare(args, item, KvHead(args), own,
              SharedMemory() + AppendShared<T>::kPipeline + Warp() * T::kQueryBytes,
              SharedMemory() + Warp() * T::kTileBytes, query);
      Accumulator<T> acc;
      Clear(acc);
      AppendTiles(args, run, query, item.kv_begin, own < rows, acc);
      ShareRows(args, item, KvHead(args), own, acc);
      StoreRows<T>(args, item, KvHead(args), own);
      SyncCta();  // before the pipeline runs over the rows
    }
  }
}

}  // namespace quire::kernels::QUIRE_SIMT

#endif  // QUIRE_KERNELS_CUDA_APPEND_CUH_
