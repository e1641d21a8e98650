// Attention on fp32 blocks: plain multiply-adds, for checking and for models that ask for it. One
// warp per query row, lanes across the dimensions.
#ifndef QUIRE_KERNELS_CUDA_PLAIN_CUH_
#define QUIRE_KERNELS_CUDA_PLAIN_CUH_

#include "kernels/cuda/output.cuh"

namespace quire::kernels::QUIRE_SIMT {

constexpr int kPlainThreads = 128;
constexpr int kLaneDims = kMaxHeadDim / kWarpLanes;

struct PlainRow {
  float q[kLaneDims];
  float out[kLaneDims];
  float max;
  float sum;
};

SIMT_DEVICE void PlainKey(const AttentionArgs& args, const KvRun& run, const QueryRow& row,
                          const ScoreRule& rule, int key, PlainRow& state) {
  const PagedKvLayout& layout = args.layout;
  const int64_t block = run.ids[key >> layout.log2_block_tokens];
  const int slot = key & (layout.block_tokens() - 1);
  const float* k = reinterpret_cast<const float*>(run.k) + block * layout.block_stride +
                   slot * layout.token_stride;
  const float* v = k + (layout.v_offset - layout.k_offset);
  float product = 0.0f;
  for (int i = 0; i < kLaneDims; ++i) {
    const int dim = Lane() + i * kWarpLanes;
    if (dim < args.layout.head_dim) product += state.q[i] * k[dim];
  }
  product = WarpSum(product);
  const float score = rule.plain ? product : ScoreOf(args, rule, row, product, 1.0f, key);
  const float max = Max(state.max, score);
  const float shrink = Exp2((state.max - max) * rule.unit);
  const float weight = Exp2((score - max) * rule.unit);
  state.max = max;
  state.sum = state.sum * shrink + weight;
  for (int i = 0; i < kLaneDims; ++i) {
    const int dim = Lane() + i * kWarpLanes;
    if (dim < args.layout.head_dim) state.out[i] = state.out[i] * shrink + weight * v[dim];
  }
}

SIMT_DEVICE void PlainItem(const AttentionArgs& args, const AttentionItem& item, int kv_head,
                           int row_index) {
  const KvRun run = RunOf(args, item, kv_head);
  const QueryRow row = RowOf(args, item, kv_head, row_index);
  const KeySpan span = SpanOf(args, item, row);
  const ScoreRule rule = RuleOf(args, kv_head);
  PlainRow state{};
  state.max = kMinusInf;
  const int dims = args.layout.head_dim;
  for (int i = 0; i < kLaneDims; ++i) {
    const int dim = Lane() + i * kWarpLanes;
    if (dim < dims) state.q[i] = LoadQueryFloat(args, row, dim);
  }
  for (int key = item.kv_begin; key < run.end; ++key) {
    if (Sees(span, args.keep_first, key)) PlainKey(args, run, row, rule, key, state);
  }
  const RowTarget target = TargetOf(args, item, kv_head, row_index);
  const RowOutput out = FinishRow(args, item, rule, target.head, state.max, state.sum);
  if (Lane() == 0) StoreLse(args, target, out.lse);
  for (int i = 0; i < kLaneDims; ++i) {
    const int dim = Lane() + i * kWarpLanes;
    if (dim < dims) StoreOut(args, target, dim, state.out[i] * out.factor);
  }
}

SIMT_KERNEL void SIMT_BOUNDS(kPlainThreads, 128) PlainKernel(const AttentionArgs args) {
  const int kv_head = static_cast<int>(CtaIndex() % args.layout.kv_heads);
  const int64_t part = CtaIndex() / args.layout.kv_heads;
  for (int i = args.part_begin[part]; i < args.part_begin[part + 1]; ++i) {
    const AttentionItem item = args.items[i];
    for (int row = Warp(); row < item.q_tokens * args.group; row += kPlainThreads / kWarpLanes) {
      PlainItem(args, item, kv_head, row);
    }
  }
}

}  // namespace quire::kernels::QUIRE_SIMT

#endif  // QUIRE_KERNELS_CUDA_PLAIN_CUH_
