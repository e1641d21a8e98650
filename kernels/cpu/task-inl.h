// One Attend call as the loops see it: rows, what they see, and which arithmetic they use.
#if defined(QUIRE_KERNELS_CPU_TASK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIRE_KERNELS_CPU_TASK_INL_H_
#undef QUIRE_KERNELS_CPU_TASK_INL_H_
#else
#define QUIRE_KERNELS_CPU_TASK_INL_H_
#endif

#include <algorithm>

#include "kernels/cpu/attention.h"
#include "kernels/cpu/pairs-inl.h"
#include "kernels/cpu/simd-inl.h"
#include "kernels/cpu/softmax-inl.h"

QUIRE_BEFORE_NAMESPACE();

namespace quire::kernels::cpu {
namespace HWY_NAMESPACE {

struct Task {
  const AttentionCall& call;
  const PlanItem& item;
  int32_t head_begin;
  int32_t heads;
  AttentionScratch& scratch;
  int64_t group;
  int64_t rows;  // on one KV head
  size_t head_dim;

  // All queries see all of a shared prefix.
  bool shared() const { return item.sequence == call.plan.sequences; }

  int64_t padded_rows() const { return (rows + kRowPad - 1) / kRowPad * kRowPad; }

  int64_t TokenOf(int64_t row) const { return item.q_row + row / group; }

  int64_t HeadOf(int32_t kv_head, int64_t row) const { return kv_head * group + row % group; }
};

template <DType kType>
bool UsesPairs(const Task& task) {
  return QUIRE_BF16_PAIRS && kFitsPairs<kType> && task.head_dim % kPairElements == 0;
}

template <DType kType>
bool UsesEvenOdd(const Task& task) {
  return Stored<kType>::kEvenOdd && !UsesPairs<kType>(task) && task.rows < ManyRows(kType);
}

// What stored elements are multiplied by when they are loaded.
template <DType kType>
float UnitOf(const Task& task) {
  return UsesPairs<kType>(task) ? 1.0f : Stored<kType>::kUnit;
}

inline RowBounds BoundsOf(const Task& task, int64_t row) {
  if (task.shared()) return {0, task.item.kv_end};
  const AttentionMask& mask = task.call.params.mask;
  const int64_t position = task.call.positions[task.TokenOf(row)];
  const int64_t end = mask.causal ? std::min(task.item.kv_end, position + 1) : task.item.kv_end;
  return {mask.window_left < 0 ? 0 : position - mask.window_left, end};
}

inline void FindBounds(const Task& task) {
  AttentionScratch& scratch = task.scratch;
  scratch.bounds.clear();
  scratch.common_bounds = {0, task.item.kv_end};
  for (int64_t r = 0; r < task.rows; ++r) {
    const RowBounds bounds = BoundsOf(task, r);
    scratch.bounds.push_back(bounds);
    scratch.common_bounds.begin = std::max(scratch.common_bounds.begin, bounds.begin);
    scratch.common_bounds.end = std::min(scratch.common_bounds.end, bounds.end);
  }
}

inline TileMask MaskOf(const RowBounds& bounds, int64_t keep, int64_t begin, int tokens) {
  const auto local = [&](int64_t position) {
    return static_cast<float>(std::clamp<int64_t>(position - begin, 0, tokens));
  };
  TileMask mask;
  mask.first = local(bounds.begin);
  mask.last = local(bounds.end);
  mask.keep = local(std::min(keep, bounds.end));
  const bool whole = static_cast<size_t>(tokens) % kLanes == 0;
  mask.open = whole && mask.first == 0 && mask.last == static_cast<float>(tokens);
  return mask;
}

template <DType kType>
LogitRule RuleOf(const Task& task, int32_t kv_head) {
  const AttentionParams& p = task.call.params;
  LogitRule rule;
  rule.scale = p.scale / UnitOf<kType>(task);
  const ScaleKind kind = task.call.pool.layout.scale_kind;
  if (kind == ScaleKind::kPerTensor) rule.scale *= p.k_scale[0];
  if (kind == ScaleKind::kPerHead) rule.scale *= p.k_scale[kv_head];
  rule.softcap = p.softcap;
  return rule;
}

}  // namespace HWY_NAMESPACE
}  // namespace quire::kernels::cpu

HWY_AFTER_NAMESPACE();

#endif  // include guard
