// From raw dot products of one tile to probabilities, keeping the running maximum and sum.
#if defined(QUIRE_KERNELS_CPU_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIRE_KERNELS_CPU_SOFTMAX_INL_H_
#undef QUIRE_KERNELS_CPU_SOFTMAX_INL_H_
#else
#define QUIRE_KERNELS_CPU_SOFTMAX_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/attention.h"
#include "kernels/cpu/simd-inl.h"
#include "kernels/cpu/tile.h"

QUIRE_BEFORE_NAMESPACE();

namespace quire::kernels::cpu {
namespace HWY_NAMESPACE {

constexpr float kMinusInf = -std::numeric_limits<float>::infinity();

// How a raw dot product becomes a logit, for one query row and one tile.
struct LogitRule {
  float scale = 1.0f;
  float softcap = 0.0f;
  float slope = 0.0f;              // ALiBi
  float distance = 0.0f;           // position of the tile's first key minus the query's
  const float* k_scale = nullptr;  // per token, or null
};

// Which keys of the tile count: first..last - 1, and those below keep.
struct TileMask {
  float first;
  float last;
  float keep;
  bool open;  // all of them, and they fill whole vectors
};

HWY_INLINE VF Logit(VF dot, const LogitRule& rule, size_t t) {
  const F32 d;
  VF s = hn::Mul(dot, hn::Set(d, rule.scale));
  if (rule.k_scale != nullptr) s = hn::Mul(s, hn::LoadU(d, rule.k_scale + t));
  if (rule.softcap > 0) {
    const VF cap = hn::Set(d, rule.softcap);
    s = hn::Mul(cap, Tanh(hn::Div(s, cap)));
  }
  if (rule.slope != 0) {
    const VF key = hn::Add(hn::Iota(d, static_cast<float>(t)), hn::Set(d, rule.distance));
    s = hn::MulAdd(hn::Set(d, rule.slope), key, s);
  }
  return s;
}

HWY_INLINE VF Hide(VF s, const TileMask& mask, size_t t) {
  const F32 d;
  const VF at = hn::Iota(d, static_cast<float>(t));
  const auto inside =
      hn::And(hn::Ge(at, hn::Set(d, mask.first)), hn::Lt(at, hn::Set(d, mask.last)));
  const auto kept = hn::Lt(at, hn::Set(d, mask.keep));
  return hn::IfThenElse(hn::Or(inside, kept), s, hn::Set(d, kMinusInf));
}

// Logits in place of dot products; returns the largest of each lane.
HWY_INLINE VF MakeLogits(float* HWY_RESTRICT scores, size_t tokens, const LogitRule& rule,
                         const TileMask& mask) {
  const F32 d;
  VF max = hn::Set(d, kMinusInf);
  for (size_t t = 0; t < tokens; t += kLanes) {
    VF s = Logit(hn::Load(d, scores + t), rule, t);
    if (!mask.open) s = Hide(s, mask, t);
    max = hn::Max(max, s);
    hn::Store(s, d, scores + t);
  }
  return max;
}

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

// What a row keeps between tiles. One that has seen nothing has max -inf, sums 0.
struct RowState {
  float* max;
  float* sums;  // per lane
  float* out;   // weighted sums, head_dim
  size_t head_dim;

  // Takes in the largest logits of a tile, per lane; only if there is a new maximum, looks for it
  // and scales what was summed up.
  HWY_INLINE void Raise(VF largest) const {
    const F32 d;
    if (HWY_LIKELY(hn::AllFalse(d, hn::Gt(largest, hn::Set(d, *max))))) return;
    const float top = hn::GetLane(hn::MaxOfLanes(d, largest));
    const VF decay = hn::Set(d, std::exp(*max - top));
    *max = top;
    hn::Store(hn::Mul(hn::Load(d, sums), decay), d, sums);
    for (size_t i = 0; i < head_dim; i += kLanes) {
      hn::Store(hn::Mul(hn::Load(d, out + i), decay), d, out + i);
    }
  }

  HWY_INLINE void Add(VF more) const {
    hn::Store(hn::Add(hn::Load(F32(), sums), more), F32(), sums);
  }
};

// One row, one tile.
template <typename A>
HWY_INLINE void UpdateRow(float* scores, size_t tokens, const LogitRule& rule, const TileMask& mask,
                          const float* v_scale, const RowState& row) {
  row.Raise(MakeLogits(scores, tokens, rule, mask));
  if (*row.max == kMinusInf) {
    std::fill(scores, scores + (tokens + kLanes - 1) / kLanes * kLanes, 0.0f);
    return;
  }
  row.Add(MakeWeights<A>(scores, tokens, *row.max, v_scale));
}

// The same if logits are only scaled and all count, a whole number of vectors.
template <typename A>
HWY_INLINE void UpdateOpenRow(float* scores, size_t tokens, float scale, const RowState& row) {
  const F32 d;
  const VF factor = hn::Set(d, scale);
  VF largest = hn::Mul(hn::Load(d, scores), factor);
  for (size_t t = kLanes; t < tokens; t += kLanes) {
    largest = hn::Max(largest, hn::Mul(hn::Load(d, scores + t), factor));
  }
  row.Raise(largest);
  const VF log2e = hn::Set(d, kLog2E);
  const VF top = hn::Set(d, *row.max);
  VF sum = hn::Zero(d);
  for (size_t t = 0; t < tokens; t += kLanes) {
    const VF logit = hn::Mul(hn::Load(d, scores + t), factor);
    const VF p = Exp2(hn::Mul(hn::Sub(logit, top), log2e));
    sum = hn::Add(sum, p);
    A::StoreWeights(p, scores, t);
  }
  row.Add(sum);
}

}  // namespace HWY_NAMESPACE
}  // namespace quire::kernels::cpu

HWY_AFTER_NAMESPACE();

#endif  // include guard
