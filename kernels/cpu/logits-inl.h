// From raw dot products of one query row to logits: scales, softcap, ALiBi, mask.
#if defined(QUIRE_KERNELS_CPU_LOGITS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIRE_KERNELS_CPU_LOGITS_INL_H_
#undef QUIRE_KERNELS_CPU_LOGITS_INL_H_
#else
#define QUIRE_KERNELS_CPU_LOGITS_INL_H_
#endif

#include <limits>

#include "kernels/cpu/exp-inl.h"
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();

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

}  // namespace HWY_NAMESPACE
}  // namespace quire::kernels::cpu

HWY_AFTER_NAMESPACE();

#endif  // include guard
