// Decode: at most 16 query rows meet a long run of keys.
//
// A CTA takes the items of one part for one KV head. Each of its four warps reads every fourth tile
// of 16 tokens through its own two-stage pipeline, without any CTA barrier in the loop, and keeps
// its own softmax state; the four states are merged once per item through shared memory.
#ifndef QUIRE_KERNELS_CUDA_DECODE_CUH_
#define QUIRE_KERNELS_CUDA_DECODE_CUH_

#include "kernels/cuda/output.cuh"

namespace quire::kernels::QUIRE_SIMT {

constexpr int kDecodeWarps = 4;
constexpr int kDecodeThreads = kDecodeWarps * kWarpLanes;

// Shared memory: the pipelines; afterwards, over them, the states to merge.
template <typename T>
struct DecodeShared {
  static constexpr int kStages = 2;
  static constexpr int kWarpBytes = kStages * T::kTileBytes;
  static constexpr int kPipelines = kDecodeWarps * kWarpBytes;
  static constexpr int kBytes = kPipelines + kDecodeWarps * T::kQueryBytes;
  static constexpr int kStats = kDecodeWarps * kWarpRows * 2;  // floats: max and sum
  static_assert((kStats + kDecodeWarps * kWarpRows * T::kDim) * 4 <= kPipelines);
};

// This warp's pipeline.
template <typename T>
SIMT_DEVICE std::byte* StagesOf() {
  return SharedMemory() + Warp() * DecodeShared<T>::kWarpBytes;
}

template <typename T>
SIMT_DEVICE void DecodeTiles(const AttentionArgs& args, const KvRun& run, const WarpQuery<T>& query,
                             int begin, Accumulator<T>& acc) {
  std::byte* const stages = StagesOf<T>();
  const int stride = kDecodeWarps * kTileTokens;
  int key = begin + Warp() * kTileTokens;
  if (key < run.end) LoadTile<T>(args, run, key, stages);
  CommitCopies();
  for (int stage = 0; key < run.end; key += stride, stage ^= 1) {
    if (key + stride < run.end) {
      LoadTile<T>(args, run, key + stride, stages + (stage ^ 1) * T::kTileBytes);
    }
    CommitCopies();
    WaitCopies<1>();
    SyncWarp();  // others' copies
    AttendTiles<T, 1>(args, query, stages + stage * T::kTileBytes, key, acc);
    SyncWarp();
  }
  WaitCopies<0>();
}

template <typename T>
SIMT_DEVICE void ShareStates(Accumulator<T>& acc) {
  auto* stats = reinterpret_cast<float*>(SharedMemory());
  float* outs = stats + DecodeShared<T>::kStats;
  const float v_unit = acc.v_unit > 0 ? acc.v_unit : 1.0f;
  SIMT_UNROLL
  for (int r = 0; r < 2; ++r) {
    const int row = Warp() * kWarpRows + Lane() / 4 + 8 * r;
    const float sum = QuadSum(acc.sum[r]);
    if (Lane() % 4 == 0) {
      stats[2 * row] = acc.max[r];
      stats[2 * row + 1] = sum;
    }
    SIMT_UNROLL
    for (int n = 0; n < T::kDim / 8; ++n) {
      outs[row * T::kDim + T::OutDim(n, 0)] = acc.out[n][2 * r] * v_unit;
      outs[row * T::kDim + T::OutDim(n, 1)] = acc.out[n][2 * r + 1] * v_unit;
    }
  }
}

// What each warp's state of a row counts, and the row's own state.
struct MergedRow {
  float max;
  float sum;
  float weights[kDecodeWarps];
};

SIMT_DEVICE MergedRow MergeStats(const float* stats, int row, float unit) {
  MergedRow merged{kMinusInf, 0.0f, {}};
  for (int w = 0; w < kDecodeWarps; ++w) {
    merged.max = Max(merged.max, stats[2 * (w * kWarpRows + row)]);
  }
  const float finite = merged.max == kMinusInf ? 0.0f : merged.max;
  for (int w = 0; w < kDecodeWarps; ++w) {
    const float* state = stats + 2 * (w * kWarpRows + row);
    merged.weights[w] = Exp2((state[0] - finite) * unit);
    merged.sum += merged.weights[w] * state[1];
  }
  return merged;
}

template <typename T>
SIMT_DEVICE void StoreMerged(const AttentionArgs& args, const AttentionItem& item,
                             const ScoreRule& rule, int kv_head) {
  const auto* stats = reinterpret_cast<const float*>(SharedMemory());
  const float* outs = stats + DecodeShared<T>::kStats;
  const int cells = item.q_tokens * args.group * T::kDim;
  for (int cell = ThreadIndex(); cell < cells; cell += kDecodeThreads) {
    const int row = cell / T::kDim;
    const int dim = cell % T::kDim;
    const MergedRow merged = MergeStats(stats, row, rule.unit);
    float sum = 0.0f;
    for (int w = 0; w < kDecodeWarps; ++w) {
      sum += merged.weights[w] * outs[(w * kWarpRows + row) * T::kDim + dim];
    }
    const RowTarget target = TargetOf(args, item, kv_head, row);
    const RowOutput out = FinishRow(args, item, rule, target.head, merged.max, merged.sum);
    StoreOut(args, target, dim, sum * out.factor);
    if (dim == 0) StoreLse(args, target, out.lse);
  }
}

template <typename T>
SIMT_KERNEL void SIMT_BOUNDS(kDecodeThreads, T::kRegisters) DecodeKernel(const AttentionArgs args) {
  const int64_t part = CtaIndex() / args.layout.kv_heads;
  for (int i = args.part_begin[part]; i < args.part_begin[part + 1]; ++i) {
    const AttentionItem& item = args.items[i];  // read again after the loop
    WarpQuery<T> query;
    Prepare(args, item, KvHead(args), 0,
            SharedMemory() + DecodeShared<T>::kPipelines + Warp() * T::kQueryBytes, StagesOf<T>(),
            query);
    Accumulator<T> acc;
    Clear(acc);
    DecodeTiles(args, RunOf(args, item, KvHead(args)), query, item.kv_begin, acc);
    SyncCta();  // all warps are done with the pipelines
    ShareStates(acc);
    SyncCta();
    StoreMerged<T>(args, item, RuleOf(args, KvHead(args)), KvHead(args));
    SyncCta();  // the next item may overwrite the states
  }
}

}  // namespace quire::kernels::QUIRE_SIMT

#endif  // QUIRE_KERNELS_CUDA_DECODE_CUH_
