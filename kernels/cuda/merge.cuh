// Partial states to outputs, by LSE: one warp per (row, head). A state of LSE -inf, or +inf which
// reads as -inf, is empty and its output is not read.
#ifndef QUIRE_KERNELS_CUDA_MERGE_CUH_
#define QUIRE_KERNELS_CUDA_MERGE_CUH_

#include "kernels/cuda/output.cuh"

namespace quire::kernels::QUIRE_SIMT {

constexpr int kMergeThreads = 128;
constexpr int kMergeWarps = kMergeThreads / kWarpLanes;

SIMT_DEVICE float StateLse(const MergeArgs& args, int64_t state) {
  const float lse = args.partial_lse[state];
  return lse == -kMinusInf ? kMinusInf : lse;
}

SIMT_DEVICE int64_t StateOf(const MergeArgs& args, const MergeRow& row, int part, int head) {
  return (args.part_rows[part] + row.token) * args.heads + head;
}

// The largest LSE of the states, and the sum of all relative to it.
struct StateSum {
  float top;
  float sum;
};

SIMT_DEVICE StateSum SumStates(const MergeArgs& args, const MergeRow& row, int head) {
  StateSum total{kMinusInf, 0.0f};
  for (int part = row.first_part; part < row.last_part; ++part) {
    total.top = Max(total.top, StateLse(args, StateOf(args, row, part, head)));
  }
  if (total.top == kMinusInf) return total;
  for (int part = row.first_part; part < row.last_part; ++part) {
    total.sum += Exp2((StateLse(args, StateOf(args, row, part, head)) - total.top) * kLog2E);
  }
  return total;
}

SIMT_DEVICE float MergedDim(const MergeArgs& args, const MergeRow& row, int head,
                            const StateSum& total, int dim) {
  float sum = 0.0f;
  for (int part = row.first_part; part < row.last_part; ++part) {
    const int64_t state = StateOf(args, row, part, head);
    const float own = StateLse(args, state);
    if (own == kMinusInf) continue;
    sum += Exp2((own - total.top) * kLog2E) * args.partial_out[state * args.head_dim + dim];
  }
  return sum / total.sum;
}

SIMT_KERNEL void SIMT_BOUNDS(kMergeThreads, 64) MergeKernel(const MergeArgs args) {
  const int64_t cell = CtaIndex() * kMergeWarps + Warp();
  if (cell >= args.cells) return;
  const MergeRow row = args.rows[cell / args.heads];
  const int head = static_cast<int>(cell % args.heads);
  const StateSum total = SumStates(args, row, head);
  const bool empty = total.top == kMinusInf;
  RowOutput out{1.0f, empty ? kMinusInf : total.top + kLn2 * Log2(total.sum)};
  if (args.sinks != nullptr) out = JoinSink(out.lse, args.sinks[head]);
  const int64_t at = row.out_row * args.out.row_stride + head * args.out.head_stride;
  for (int dim = Lane(); dim < args.head_dim; dim += kWarpLanes) {
    const float value = empty ? 0.0f : MergedDim(args, row, head, total, dim);
    StoreFloat(args.out.dtype, args.out.data, at + dim, value * out.factor);
  }
  if (args.lse != nullptr && Lane() == 0) {
    args.lse[row.out_row * args.lse_row_stride + head * args.lse_head_stride] = out.lse;
  }
}

}  // namespace quire::kernels::QUIRE_SIMT

#endif  // QUIRE_KERNELS_CUDA_MERGE_CUH_
