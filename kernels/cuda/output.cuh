// From a row's state to its output: the tensor itself, with the sink, or a partial state.
#ifndef QUIRE_KERNELS_CUDA_OUTPUT_CUH_
#define QUIRE_KERNELS_CUDA_OUTPUT_CUH_

#include "kernels/cuda/attend.cuh"

namespace quire::kernels::QUIRE_SIMT {

struct RowOutput {
  float factor;  // of the weighted sum of V
  float lse;     // natural
};

// Joins a sink logit to a row of LSE `lse`: what its output shrinks by, and the new LSE.
SIMT_DEVICE RowOutput JoinSink(float lse, float sink) {
  const float top = Max(lse, sink);
  if (top == kMinusInf) return {0.0f, kMinusInf};
  const float own = Exp2((lse - top) * kLog2E);
  const float total = own + Exp2((sink - top) * kLog2E);
  return {own / total, top + kLn2 * Log2(total)};
}

// `max` in score units; `sum` of the whole row.
SIMT_DEVICE RowOutput FinishRow(const AttentionArgs& args, const AttentionItem& item,
                                const ScoreRule& rule, int head, float max, float sum) {
  RowOutput row{0.0f, kMinusInf};
  if (sum > 0 || sum != sum) {
    row.factor = args.v_scale[head / args.group] / sum;
    row.lse = max * rule.natural + kLn2 * Log2(sum);
  }
  if (item.partial_row >= 0 || args.sinks == nullptr) return row;
  const RowOutput joined = JoinSink(row.lse, args.sinks[head]);
  return {row.factor * joined.factor, joined.lse};
}

// Where row `row` of an item goes.
struct RowTarget {
  int head;
  int64_t out;  // element index
  int64_t lse;
  bool partial;
};

SIMT_DEVICE RowTarget TargetOf(const AttentionArgs& args, const AttentionItem& item, int kv_head,
                               int row) {
  RowTarget target;
  const int token = row / args.group;
  target.head = kv_head * args.group + row % args.group;
  target.partial = item.partial_row >= 0;
  if (target.partial) {
    target.lse = (item.partial_row + token) * args.q_heads + target.head;
    target.out = target.lse * args.layout.head_dim;
  } else {
    const int64_t q_row = item.q_row + token;
    target.out = q_row * args.out.row_stride + target.head * args.out.head_stride;
    target.lse = q_row * args.lse_row_stride + target.head * args.lse_head_stride;
  }
  return target;
}

SIMT_DEVICE void StoreOut(const AttentionArgs& args, const RowTarget& target, int dim,
                          float value) {
  if (target.partial) {
    args.partial_out[target.out + dim] = value;
  } else {
    StoreFloat(args.out.dtype, args.out.data, target.out + dim, value);
  }
}

SIMT_DEVICE void StoreLse(const AttentionArgs& args, const RowTarget& target, float lse) {
  if (target.partial) {
    args.partial_lse[target.lse] = lse;
  } else if (args.lse != nullptr) {
    args.lse[target.lse] = lse;
  }
}

}  // namespace quire::kernels::QUIRE_SIMT

#endif  // QUIRE_KERNELS_CUDA_OUTPUT_CUH_
