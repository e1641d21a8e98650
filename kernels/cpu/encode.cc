#include "kernels/cpu/encode.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/encode.cc"
#include "hwy/foreach_target.h"
// After foreach_target:
#include "hwy/highway.h"
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();

namespace quire::kernels::cpu {
namespace HWY_NAMESPACE {
namespace {

using U32 = hn::Rebind<uint32_t, F32>;
using I32 = hn::Rebind<int32_t, F32>;
using VI = hn::Vec<I32>;

HWY_INLINE VI Int(uint32_t value) { return hn::Set(I32(), static_cast<int32_t>(value)); }

HWY_INLINE VI Magnitude(VF x) { return hn::And(hn::BitCast(I32(), x), Int(0x7fffffffu)); }

// Sign bit moved down to bit `kBit`.
template <int kBit>
HWY_INLINE VI SignAt(VF x) {
  const auto bits = hn::BitCast(U32(), x);
  return hn::And(hn::BitCast(I32(), hn::ShiftRight<31 - kBit>(bits)), Int(1u << kBit));
}

// (v + half - 1 + odd bit) >> kShift: drops kShift bits, to nearest even.
template <int kShift>
HWY_INLINE VI RoundShift(VI v) {
  const VI odd = hn::And(hn::ShiftRight<kShift>(v), Int(1));
  const VI sum = hn::Add(hn::Add(v, Int((1u << (kShift - 1)) - 1)), odd);
  return hn::BitCast(I32(), hn::ShiftRight<kShift>(hn::BitCast(U32(), sum)));
}

HWY_INLINE VI IsNanMask(VI magnitude) {
  return hn::VecFromMask(I32(), hn::Gt(magnitude, Int(0x7f800000u)));
}

HWY_INLINE VI Select(VI mask, VI yes, VI no) {
  return hn::Or(hn::And(mask, yes), hn::AndNot(mask, no));
}

HWY_INLINE VI Less(VI a, uint32_t b) { return hn::VecFromMask(I32(), hn::Lt(a, Int(b))); }

// Adds a power of two so that the quantum of the result is the target's, and removes its bits.
HWY_INLINE VI RoundTiny(VI magnitude, float shift, uint32_t shift_bits) {
  const VF sum = hn::Add(hn::BitCast(F32(), magnitude), hn::Set(F32(), shift));
  return hn::Sub(hn::BitCast(I32(), sum), Int(shift_bits));
}

HWY_INLINE VI Bf16Code(VF x) {
  const VI magnitude = Magnitude(x);
  const VI nan = hn::Or(hn::ShiftRight<16>(magnitude), Int(0x40));
  return hn::Or(SignAt<15>(x), Select(IsNanMask(magnitude), nan, RoundShift<16>(magnitude)));
}

HWY_INLINE VI Fp16Code(VF x) {
  const VI m = Magnitude(x);
  const VI normal = RoundShift<13>(hn::Sub(m, Int(0x38000000u)));
  VI code = Select(Less(m, 0x38800000u), RoundTiny(m, 0.5f, 0x3f000000u), normal);
  code = Select(Less(m, 0x477ff000u), code, Int(0x7c00));
  const VI payload = hn::And(hn::ShiftRight<13>(m), Int(0x3ff));
  code = Select(IsNanMask(m), hn::Or(payload, Int(0x7e00)), code);
  return hn::Or(SignAt<15>(x), code);
}

HWY_INLINE VI E4m3Code(VF x) {
  const VI m = Magnitude(x);
  const VI normal = RoundShift<20>(hn::Sub(m, Int(0x3c000000u)));
  VI code = Select(Less(m, 0x3c800000u), RoundTiny(m, 0x1p14f, 0x46800000u), normal);
  code = Select(Less(m, 0x43e00000u), code, Int(0x7e));
  code = Select(IsNanMask(m), Int(0x7f), code);
  return hn::Or(SignAt<7>(x), code);
}

HWY_INLINE VI Int8Code(VF x) {
  const VF number = hn::IfThenElseZero(hn::Eq(x, x), x);
  const VF low = hn::Set(F32(), -kInt8Max);
  return hn::NearestInt(hn::Min(hn::Max(number, low), hn::Set(F32(), kInt8Max)));
}

template <DType kTo>
HWY_INLINE void StoreCodes(VF x, void* to, size_t i) {
  const hn::Rebind<uint16_t, F32> half;
  const hn::Rebind<uint8_t, F32> byte;
  if constexpr (kTo == DType::kF32) {
    hn::StoreU(x, F32(), static_cast<float*>(to) + i);
  } else if constexpr (kTo == DType::kBF16) {
    hn::StoreU(hn::DemoteTo(half, Bf16Code(x)), half, static_cast<uint16_t*>(to) + i);
  } else if constexpr (kTo == DType::kF16) {
    hn::StoreU(hn::DemoteTo(half, Fp16Code(x)), half, static_cast<uint16_t*>(to) + i);
  } else if constexpr (kTo == DType::kE4M3) {
    hn::StoreU(hn::DemoteTo(byte, E4m3Code(x)), byte, static_cast<uint8_t*>(to) + i);
  } else {
    const hn::Rebind<int8_t, F32> code;
    hn::StoreU(hn::DemoteTo(code, Int8Code(x)), code, static_cast<int8_t*>(to) + i);
  }
}

template <DType kFrom, DType kTo>
int64_t Encode(const std::byte* from, void* to, size_t count, float scale) {
  constexpr bool kQuantise = kTo == DType::kE4M3 || kTo == DType::kI8;
  const VF divisor = hn::Set(F32(), scale);
  size_t nans = 0;
  for (size_t i = 0; i < count; i += kLanes) {
    VF x = Stored<kFrom>::Load(from, i);
    if constexpr (kQuantise) {
      nans += hn::CountTrue(F32(), hn::IsNaN(x));
      x = hn::Div(x, divisor);
    }
    StoreCodes<kTo>(x, to, i);
  }
  return static_cast<int64_t>(nans);
}

template <DType kFrom>
int64_t EncodeFrom(const std::byte* from, DType to_type, void* to, size_t count, float scale) {
  switch (to_type) {
    case DType::kF32:
      return Encode<kFrom, DType::kF32>(from, to, count, scale);
    case DType::kF16:
      return Encode<kFrom, DType::kF16>(from, to, count, scale);
    case DType::kBF16:
      return Encode<kFrom, DType::kBF16>(from, to, count, scale);
    case DType::kE4M3:
      return Encode<kFrom, DType::kE4M3>(from, to, count, scale);
    case DType::kI8:
      return Encode<kFrom, DType::kI8>(from, to, count, scale);
  }
  return 0;
}

int64_t EncodeRowForTarget(DType from_type, const void* from, DType to_type, void* to, size_t count,
                           float scale) {
  const auto* bytes = static_cast<const std::byte*>(from);
  if (from_type == DType::kF32) return EncodeFrom<DType::kF32>(bytes, to_type, to, count, scale);
  if (from_type == DType::kF16) return EncodeFrom<DType::kF16>(bytes, to_type, to, count, scale);
  return EncodeFrom<DType::kBF16>(bytes, to_type, to, count, scale);
}

template <DType kType>
float Largest(const std::byte* row, size_t count) {
  const F32 d;
  VF largest = hn::Zero(d);
  for (size_t i = 0; i < count; i += kLanes) {
    const VF x = hn::Abs(Stored<kType>::Load(row, i));
    const auto finite = hn::Lt(x, hn::Set(d, std::numeric_limits<float>::infinity()));
    largest = hn::Max(largest, hn::IfThenElseZero(finite, x));
  }
  return hn::GetLane(hn::MaxOfLanes(d, largest));
}

float LargestFiniteForTarget(DType type, const void* row, size_t count) {
  const auto* bytes = static_cast<const std::byte*>(row);
  if (type == DType::kF32) return Largest<DType::kF32>(bytes, count);
  if (type == DType::kF16) return Largest<DType::kF16>(bytes, count);
  return Largest<DType::kBF16>(bytes, count);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace quire::kernels::cpu

HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <cstring>

namespace quire::kernels::cpu {
namespace {
HWY_EXPORT(EncodeRowForTarget);
HWY_EXPORT(LargestFiniteForTarget);
}  // namespace

int64_t EncodeRow(DType from_type, const void* from, DType to_type, void* to, size_t count,
                  float scale) {
  if (from_type == to_type) {
    std::memcpy(to, from, count * static_cast<size_t>(ElementBytes(to_type)));
    return 0;
  }
  return HWY_DYNAMIC_DISPATCH(EncodeRowForTarget)(from_type, from, to_type, to, count, scale);
}

float LargestFinite(DType type, const void* row, size_t count) {
  return HWY_DYNAMIC_DISPATCH(LargestFiniteForTarget)(type, row, count);
}

}  // namespace quire::kernels::cpu
#endif  // HWY_ONCE
