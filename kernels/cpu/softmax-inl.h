// From raw dot products of one tile to probabilities, keeping the running maximum and sum.
#if defined(QUIRE_KERNELS_CPU_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIRE_KERNELS_CPU_SOFTMAX_INL_H_
#undef QUIRE_KERNELS_CPU_SOFTMAX_INL_H_
#else
#define QUIRE_KERNELS_CPU_SOFTMAX_INL_H_
#endif

#include <algorithm>
#include <cmath>

#include "kernels/cpu/attention.h"
#include "kernels/cpu/exp-inl.h"
#include "kernels/cpu/logits-inl.h"
#include "kernels/cpu/simd-inl.h"

QUIRE_BEFORE_NAMESPACE();

namespace quire::kernels::cpu {
namespace HWY_NAMESPACE {

// kRows query rows work together: scores of four keys of the first row, then of the second, ...,
// then of the next four keys. A vector thus holds scores of several rows, and what is kept per row
// is repeated to match.
constexpr size_t kQuad = 4;

// Where scores of row r for keys 4 * quad .. 4 * quad + 3 begin, of `floats` each.
template <int kRows>
HWY_INLINE size_t QuadAt(size_t quad, size_t r, size_t floats) {
  return (quad * kRows + r) * floats;
}

// Floats that hold one number for each row of a block, repeated: whole vectors, whole quads.
template <int kRows>
constexpr size_t kStateLanes = std::max(kLanes, kRows* kQuad);

// What a block of kRows rows keeps between tiles. A row that has seen nothing has max -inf, sums 0.
template <int kRows>
struct BlockState {
  float* max;   // kStateLanes
  float* sums;  // kStateLanes; those of a row add up to its sum
  float* out;   // weighted sums, [kRows][head_dim]
  size_t head_dim;

  HWY_INLINE float Max(size_t r) const { return max[kQuad * r]; }

  // Takes in a logit of row r; if it is a new maximum, scales what was summed up.
  void Raise(size_t r, float logit) const {
    if (!(logit > Max(r))) return;
    const float decay = std::exp(Max(r) - logit);
    for (size_t lane = 0; lane < kStateLanes<kRows>; ++lane) {
      if (lane / kQuad % kRows != r) continue;
      max[lane] = logit;
      sums[lane] *= decay;
    }
    for (size_t i = r * head_dim; i < (r + 1) * head_dim; ++i) out[i] *= decay;
  }
};

// exp(logit - max) in place of logits, times v_scale if given; returns sums without it.
template <typename A>
HWY_INLINE VF MakeWeights(float* scores, size_t tokens, float max, const float* v_scale) {
  const F32 d;
  const VF log2e = hn::Set(d, kLog2E);
  const VF top = hn::Set(d, max);
  VF sum = hn::Zero(d);
  for (size_t t = 0; t < tokens; t += kLanes) {
    VF p = Exp2(hn::Mul(hn::Sub(hn::Load(d, scores + t), top), log2e));
    sum = hn::Add(sum, p);
    if (v_scale != nullptr) p = hn::Mul(p, hn::LoadU(d, v_scale + t));
    A::StoreWeights(p, scores, t);
  }
  return sum;
}

// Row r of a block, one tile. Weights of hidden keys up to a whole quad are 0.
template <typename A, int kRows>
void UpdateRow(const float* scores, float* weights, size_t r, size_t tokens, const LogitRule& rule,
               const TileMask& mask, const float* v_scale, const BlockState<kRows>& state) {
  const F32 d;
  HWY_ALIGN float row[kPlanTileTokens] = {};
  const size_t quads = (tokens + kQuad - 1) / kQuad;
  for (size_t quad = 0; quad < quads; ++quad) {
    std::copy_n(scores + QuadAt<kRows>(quad, r, kQuad), kQuad, row + quad * kQuad);
  }
  state.Raise(r, hn::GetLane(hn::MaxOfLanes(d, MakeLogits(row, tokens, rule, mask))));
  size_t written = 0;
  if (state.Max(r) != kMinusInf) {
    const VF sum = MakeWeights<A>(row, tokens, state.Max(r), v_scale);
    state.sums[kQuad * r] += hn::GetLane(hn::SumOfLanes(d, sum));
    written = (tokens + kLanes - 1) / kLanes * kLanes;
  }
  if (written < quads * kQuad) std::fill(row + written, row + quads * kQuad, 0.0f);
  for (size_t quad = 0; quad < quads; ++quad) {
    std::copy_n(row + quad * A::kQuadFloats, A::kQuadFloats,
                weights + QuadAt<kRows>(quad, r, A::kQuadFloats));
  }
}

// Largest logits of a tile where all count, per lane of the state, against the maxima.
template <int kRows>
HWY_INLINE void RaiseOpenBlock(const float* HWY_RESTRICT scores, size_t count, float scale,
                               const BlockState<kRows>& state) {
  const F32 d;
  constexpr size_t kWide = kStateLanes<kRows>;
  const VF factor = hn::Set(d, scale);
  HWY_ALIGN float largest[kWide];
  bool higher = false;
  for (size_t lane = 0; lane < kWide; lane += kLanes) {
    VF most = hn::Mul(hn::Load(d, scores + lane), factor);
    for (size_t i = lane + kWide; i < count; i += kWide) {
      most = hn::Max(most, hn::Mul(hn::Load(d, scores + i), factor));
    }
    higher |= !hn::AllFalse(d, hn::Gt(most, hn::Load(d, state.max + lane)));
    hn::Store(most, d, largest + lane);
  }
  if (HWY_LIKELY(!higher)) return;
  for (size_t r = 0; r < kRows; ++r) {
    float most = kMinusInf;
    for (size_t lane = r * kQuad; lane < kWide; lane += kRows * kQuad) {
      most = std::max(most, *std::max_element(largest + lane, largest + lane + kQuad));
    }
    state.Raise(r, most);
  }
}

// All rows of a block, one tile whose logits are only scaled and all count, in whole vectors and
// quads.
template <typename A, int kRows>
HWY_INLINE void UpdateOpenBlock(const float* HWY_RESTRICT scores, float* HWY_RESTRICT weights,
                                size_t tokens, float scale, const BlockState<kRows>& state) {
  const F32 d;
  constexpr size_t kWide = kStateLanes<kRows>;
  const size_t count = tokens * kRows;
  RaiseOpenBlock<kRows>(scores, count, scale, state);
  const VF factor = hn::Set(d, scale * kLog2E);
  for (size_t lane = 0; lane < kWide; lane += kLanes) {
    const VF top = hn::Mul(hn::Load(d, state.max + lane), hn::Set(d, kLog2E));
    VF sum = hn::Load(d, state.sums + lane);
    for (size_t i = lane; i < count; i += kWide) {
      const VF p = Exp2(hn::MulSub(hn::Load(d, scores + i), factor, top));
      sum = hn::Add(sum, p);
      A::StoreWeights(p, weights, i);
    }
    hn::Store(sum, d, state.sums + lane);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace quire::kernels::cpu

HWY_AFTER_NAMESPACE();

#endif  // include guard
