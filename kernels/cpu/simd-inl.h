// Vector helpers for every Highway target: loading stored KV as fp32, sums of several vectors at
// once.
#if defined(QUIRE_KERNELS_CPU_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIRE_KERNELS_CPU_SIMD_INL_H_
#undef QUIRE_KERNELS_CPU_SIMD_INL_H_
#else
#define QUIRE_KERNELS_CPU_SIMD_INL_H_
#endif

#include "hwy/highway.h"
#include "kernels/dtype.h"

#if defined(__clang__)
#define QUIRE_UNROLL _Pragma("clang loop unroll(full)")
#else
#define QUIRE_UNROLL _Pragma("GCC unroll 16")
#endif

// Highway's best x86 target stands for machines that have AVX512_BF16 as well: its code is switched
// off on others (attend.cc). What uses that lies between these and HWY_AFTER_NAMESPACE.
#undef QUIRE_BF16_PAIRS
#undef QUIRE_BEFORE_NAMESPACE
#if HWY_TARGET == HWY_AVX3_DL
#define QUIRE_BF16_PAIRS 1
#define QUIRE_BEFORE_NAMESPACE() HWY_PUSH_ATTRIBUTES(HWY_TARGET_STR ",avx512bf16")
#else
#define QUIRE_BF16_PAIRS 0
#define QUIRE_BEFORE_NAMESPACE() HWY_BEFORE_NAMESPACE()
#endif

HWY_BEFORE_NAMESPACE();

namespace quire::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using VF = hn::Vec<F32>;

// Accumulators that fit beside their operands: 32 vector registers from AVX-512 on, else 16.
#if HWY_TARGET <= HWY_AVX3
constexpr int kAccumulators = 16;
#else
constexpr int kAccumulators = 8;
#endif

constexpr size_t kLanes = HWY_LANES(float);

// First element of vector j of a row.
constexpr size_t VectorAt(int j) { return static_cast<size_t>(j) * kLanes; }

// Query rows that meet stored rows, [row][head_dim].
struct QueryRows {
  const float* at;
  size_t rows;  // padded
  size_t head_dim;
};

// Stored elements -> fp32, times kUnit: a power of two that the caller folds into its scales.
// Load gives kLanes elements. First and Second give 2 * kLanes in whatever order is cheapest: if
// kEvenOdd, the even ones and the odd ones, else the lower and the upper half.
template <DType kType>
struct Stored;

template <DType kType>
struct InOrder {
  static constexpr bool kEvenOdd = false;

  static HWY_INLINE VF First(const std::byte* row, size_t i) { return Stored<kType>::Load(row, i); }

  static HWY_INLINE VF Second(const std::byte* row, size_t i) {
    return Stored<kType>::Load(row, i + kLanes);
  }
};

template <>
struct Stored<DType::kF32> : InOrder<DType::kF32> {
  static constexpr float kUnit = 1.0f;

  static HWY_INLINE VF Load(const std::byte* row, size_t i) {
    return hn::LoadU(F32(), reinterpret_cast<const float*>(row) + i);
  }
};

template <>
struct Stored<DType::kBF16> {
  static constexpr float kUnit = 1.0f;
  static constexpr bool kEvenOdd = true;

  // One load and one operation each: a bf16 in the upper half of a word is that fp32.
  static HWY_INLINE VF First(const std::byte* row, size_t i) {
    return hn::BitCast(F32(), hn::ShiftLeft<16>(Words(row, i)));
  }

  static HWY_INLINE VF Second(const std::byte* row, size_t i) {
    const hn::Rebind<uint32_t, F32> words;
    return hn::BitCast(F32(), hn::And(Words(row, i), hn::Set(words, 0xffff0000u)));
  }

  static HWY_INLINE hn::Vec<hn::Rebind<uint32_t, F32>> Words(const std::byte* row, size_t i) {
    return hn::LoadU(hn::Rebind<uint32_t, F32>(), reinterpret_cast<const uint32_t*>(row + 2 * i));
  }

  static HWY_INLINE VF Load(const std::byte* row, size_t i) {
    const hn::Rebind<hwy::bfloat16_t, F32> narrow;
    return hn::PromoteTo(F32(),
                         hn::LoadU(narrow, reinterpret_cast<const hwy::bfloat16_t*>(row) + i));
  }
};

template <>
struct Stored<DType::kF16> : InOrder<DType::kF16> {
  static constexpr float kUnit = 1.0f;

  static HWY_INLINE VF Load(const std::byte* row, size_t i) {
    const hn::Rebind<hwy::float16_t, F32> narrow;
    return hn::PromoteTo(F32(),
                         hn::LoadU(narrow, reinterpret_cast<const hwy::float16_t*>(row) + i));
  }
};

template <>
struct Stored<DType::kI8> : InOrder<DType::kI8> {
  static constexpr float kUnit = 1.0f;

  static HWY_INLINE VF Load(const std::byte* row, size_t i) {
    const hn::Rebind<int8_t, F32> narrow;
    const hn::Rebind<int32_t, F32> wide;
    const auto code = hn::LoadU(narrow, reinterpret_cast<const int8_t*>(row) + i);
    return hn::ConvertTo(F32(), hn::PromoteTo(wide, code));
  }
};

template <>
struct Stored<DType::kE4M3> : InOrder<DType::kE4M3> {
  // The seven bits moved to where fp16 keeps exponent and mantissa: exact, with the wrong bias.
  static constexpr float kUnit = 0x1p-8f;

  static HWY_INLINE VF Load(const std::byte* row, size_t i) {
    const hn::Rebind<int8_t, F32> narrow;
    const hn::Rebind<int16_t, F32> half;
    const hn::Rebind<hwy::float16_t, F32> fp16;
    const auto code = hn::LoadU(narrow, reinterpret_cast<const int8_t*>(row) + i);
    const auto moved = hn::ShiftLeft<7>(hn::PromoteTo(half, code));
    const auto bits = hn::And(moved, hn::Set(half, static_cast<int16_t>(0xBF80)));
    return hn::PromoteTo(F32(), hn::BitCast(fp16, bits));
  }
};

// Per 128-bit block: lane j of the result is the sum of v[j]'s lanes in that block.
HWY_INLINE VF SumQuads(const VF* v) {
  const F32 d;
#if HWY_TARGET == HWY_SCALAR
  (void)d;
  return v[0];
#else
  const hn::RepartitionToWide<F32> pairs;
  const VF ab = hn::Add(hn::InterleaveLower(d, v[0], v[1]), hn::InterleaveUpper(d, v[0], v[1]));
  const VF cd = hn::Add(hn::InterleaveLower(d, v[2], v[3]), hn::InterleaveUpper(d, v[2], v[3]));
  const auto low = hn::InterleaveLower(pairs, hn::BitCast(pairs, ab), hn::BitCast(pairs, cd));
  const auto high = hn::InterleaveUpper(pairs, hn::BitCast(pairs, ab), hn::BitCast(pairs, cd));
  return hn::Add(hn::BitCast(d, low), hn::BitCast(d, high));
#endif
}

// Lane j of the result is the sum of v[j]'s lanes, for kLanes vectors.
HWY_INLINE VF SumLanes(const VF* v) {
#if HWY_CAP_GE512
  const F32 d;
  const VF a = SumQuads(v), b = SumQuads(v + 4), c = SumQuads(v + 8), e = SumQuads(v + 12);
  const VF ab = hn::Add(hn::OddEvenBlocks(b, a), hn::SwapAdjacentBlocks(hn::OddEvenBlocks(a, b)));
  const VF ce = hn::Add(hn::OddEvenBlocks(e, c), hn::SwapAdjacentBlocks(hn::OddEvenBlocks(c, e)));
  return hn::Add(hn::ConcatLowerLower(d, ce, ab), hn::ConcatUpperUpper(d, ce, ab));
#elif HWY_CAP_GE256
  const F32 d;
  const VF a = SumQuads(v), b = SumQuads(v + 4);
  return hn::Add(hn::ConcatLowerLower(d, b, a), hn::ConcatUpperUpper(d, b, a));
#else
  return SumQuads(v);
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace quire::kernels::cpu

HWY_AFTER_NAMESPACE();

#endif  // include guard
