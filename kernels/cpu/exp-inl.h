// exp2 and tanh for every Highway target.
#if defined(QUIRE_KERNELS_CPU_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIRE_KERNELS_CPU_EXP_INL_H_
#undef QUIRE_KERNELS_CPU_EXP_INL_H_
#else
#define QUIRE_KERNELS_CPU_EXP_INL_H_
#endif

#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();

namespace quire::kernels::cpu {
namespace HWY_NAMESPACE {

// 2^x for x <= 0 (or slightly above), to 2.6e-7 and exact at 0; 0 from -127 down, for -infinity and
// for NaN.
HWY_INLINE VF Exp2(VF x) {
  const F32 d;
  const hn::Rebind<uint32_t, F32> bits;
  // Added to this, x is rounded to an integer, which with a float's bias stands in the lowest bits.
  const VF magic = hn::Set(d, 0x1.8p23f + 127.0f);
  const VF lowest = hn::Set(d, -127.0f);
  x = hn::IfThenElse(hn::Gt(x, lowest), x, lowest);
  const VF biased = hn::Add(x, magic);
  const VF f = hn::Sub(x, hn::Sub(biased, magic));
  VF p = hn::Set(d, 1.3381302124e-3f);
  p = hn::MulAdd(p, f, hn::Set(d, 9.6663683653e-3f));
  p = hn::MulAdd(p, f, hn::Set(d, 5.5503811687e-2f));
  p = hn::MulAdd(p, f, hn::Set(d, 2.4022349715e-1f));
  p = hn::MulAdd(p, f, hn::Set(d, 6.9314718246e-1f));
  p = hn::MulAdd(p, f, hn::Set(d, 1.0f));
  return hn::Mul(p, hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(bits, biased))));
}

constexpr float kLog2E = 1.44269504088896340736f;

// (1 - e) / (1 + e) with e = exp(-2 |x|), sign of x.
HWY_INLINE VF Tanh(VF x) {
  const F32 d;
  const VF one = hn::Set(d, 1.0f);
  const VF e = Exp2(hn::Mul(hn::Abs(x), hn::Set(d, -2.0f * kLog2E)));
  return hn::CopySign(hn::Div(hn::Sub(one, e), hn::Add(one, e)), x);
}

}  // namespace HWY_NAMESPACE
}  // namespace quire::kernels::cpu

HWY_AFTER_NAMESPACE();

#endif  // include guard
