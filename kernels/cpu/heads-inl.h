// What a task does to a KV head before and after its keys are walked: queries in, outputs or
// partial states out.
#if defined(QUIRE_KERNELS_CPU_HEADS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIRE_KERNELS_CPU_HEADS_INL_H_
#undef QUIRE_KERNELS_CPU_HEADS_INL_H_
#else
#define QUIRE_KERNELS_CPU_HEADS_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/cpu/row_io-inl.h"
#include "kernels/cpu/softmax-inl.h"
#include "kernels/cpu/task-inl.h"

QUIRE_BEFORE_NAMESPACE();

namespace quire::kernels::cpu {
namespace HWY_NAMESPACE {

template <DType kType>
void LoadQueries(const Task& task, int32_t kv_head, const HeadState& s) {
  const AttentionParams& p = task.call.params;
  const auto padded = static_cast<size_t>(task.padded_rows());
  std::fill(s.q, s.q + kQueryWidth * padded * task.head_dim, 0.0f);
  for (int64_t r = 0; r < task.rows; ++r) {
    const size_t at = static_cast<size_t>(r) * task.head_dim;
    const int64_t head = task.HeadOf(kv_head, r);
    // Pairs keep their terms where the others keep floats.
    float* row = (UsesPairs<kType>(task) ? s.out : s.q) + at;
    LoadQuery(p, task.TokenOf(r) * p.q_row_stride + head * p.q_head_stride, task.head_dim, row);
    if (UsesEvenOdd<kType>(task)) SplitEvenOdd(row, task.head_dim);
    if (UsesPairs<kType>(task)) {
      SplitTerms(row, task.head_dim, padded * task.head_dim, reinterpret_cast<uint16_t*>(s.q) + at);
    }
  }
}

template <DType kType>
void BeginHead(const Task& task, int32_t kv_head, const HeadState& s) {
  LoadQueries<kType>(task, kv_head, s);
  const int64_t padded = task.padded_rows();
  std::fill(s.out, s.out + static_cast<size_t>(padded) * task.head_dim, 0.0f);
  std::fill(s.max, s.max + padded * kSumLanes, kMinusInf);
  std::fill(s.sums, s.sums + padded * kSumLanes, 0.0f);
}

// A finished row: what to multiply the sums by, and the LSE.
struct RowResult {
  float factor = 0.0f;
  float lse = kMinusInf;
};

// Of a row that was worked on with `block` others or alone, see BlockState.
inline RowResult Finish(const HeadState& s, int64_t row, int64_t block, const float* sink) {
  const int64_t begin = row / block * block * kSumLanes;
  const int64_t first = row % block * static_cast<int64_t>(kQuad);
  const float max = s.max[begin + first];
  float sum = 0;
  for (int64_t lane = first; lane < kSumLanes; lane += block * static_cast<int64_t>(kQuad)) {
    const float* sums = s.sums + begin + lane;
    sum = std::accumulate(sums, sums + kQuad, sum);
  }
  const float top = sink != nullptr ? std::max(max, *sink) : max;
  if (top == kMinusInf) return {};
  const float factor = sum > 0 ? std::exp(max - top) : 0.0f;
  float total = sum * factor;
  if (sink != nullptr) total += std::exp(*sink - top);
  return {factor / total, top + std::log(total)};
}

inline void StoreRow(const Task& task, int64_t row, int64_t head, const float* out, float unit,
                     const HeadState& s, int64_t block) {
  const AttentionParams& p = task.call.params;
  if (task.item.partial_row >= 0) {
    const RowResult result = Finish(s, row, block, nullptr);
    const int64_t cell = (task.item.partial_row + row / task.group) * p.q_heads + head;
    StoreOut(DType::kF32, task.call.partial_out, cell * static_cast<int64_t>(task.head_dim), out,
             task.head_dim, unit * result.factor);
    task.call.partial_lse[cell] = result.lse;
    return;
  }
  const RowResult result = Finish(s, row, block, p.sinks != nullptr ? p.sinks + head : nullptr);
  const int64_t token = task.TokenOf(row);
  StoreOut(p.out_dtype, p.out, token * p.out_row_stride + head * p.out_head_stride, out,
           task.head_dim, unit * result.factor);
  if (p.lse != nullptr) p.lse[token * p.lse_row_stride + head * p.lse_head_stride] = result.lse;
}

// Divides by the sum and stores: to the workspace, or to the output with the sink joined.
template <DType kType>
void EndHead(const Task& task, int32_t kv_head, const HeadState& s, int64_t block) {
  const AttentionParams& p = task.call.params;
  const ScaleKind kind = task.call.pool.layout.scale_kind;
  float unit = 1.0f / UnitOf<kType>(task);
  if (kind == ScaleKind::kPerTensor) unit *= p.v_scale[0];
  if (kind == ScaleKind::kPerHead) unit *= p.v_scale[kv_head];
  for (int64_t r = 0; r < task.rows; ++r) {
    float* out = s.out + static_cast<size_t>(r) * task.head_dim;
    if (UsesEvenOdd<kType>(task)) JoinEvenOdd(out, task.head_dim);
    if (UsesPairs<kType>(task)) JoinPairs(out, task.head_dim);
    StoreRow(task, r, task.HeadOf(kv_head, r), out, unit, s, block);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace quire::kernels::cpu

HWY_AFTER_NAMESPACE();

#endif  // include guard
