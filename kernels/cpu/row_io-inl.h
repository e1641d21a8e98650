// Query rows in, output rows out: conversion to and from fp32, and the order of bf16 pairs.
#if defined(QUIRE_KERNELS_CPU_ROW_IO_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIRE_KERNELS_CPU_ROW_IO_INL_H_
#undef QUIRE_KERNELS_CPU_ROW_IO_INL_H_
#else
#define QUIRE_KERNELS_CPU_ROW_IO_INL_H_
#endif

#include <algorithm>

#include "kernels/backend.h"
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();

namespace quire::kernels::cpu {
namespace HWY_NAMESPACE {

template <typename Load>
HWY_INLINE void FillRow(float* HWY_RESTRICT to, size_t count, Load load) {
  for (size_t i = 0; i < count; ++i) to[i] = load(i);
}

HWY_INLINE void LoadQuery(const AttentionParams& p, int64_t at, size_t count,
                          float* HWY_RESTRICT to) {
  const auto* halves = static_cast<const uint16_t*>(p.q) + (p.q_dtype == DType::kF32 ? 0 : at);
  switch (p.q_dtype) {
    case DType::kBF16:
      return FillRow(to, count, [halves](size_t i) { return Bf16ToFloat(halves[i]); });
    case DType::kF16:
      return FillRow(to, count, [halves](size_t i) { return Fp16ToFloat(halves[i]); });
    default: {
      const float* floats = static_cast<const float*>(p.q) + at;
      return FillRow(to, count, [floats](size_t i) { return floats[i]; });
    }
  }
}

// Puts each pair of vectors into the order of First and Second, or back.
HWY_INLINE void SplitEvenOdd(float* row, size_t head_dim) {
  float even_odd[2 * kLanes];
  for (size_t i = 0; i + 2 * kLanes <= head_dim; i += 2 * kLanes) {
    for (size_t j = 0; j < 2 * kLanes; ++j) even_odd[j / 2 + j % 2 * kLanes] = row[i + j];
    std::copy(even_odd, even_odd + 2 * kLanes, row + i);
  }
}

HWY_INLINE void JoinEvenOdd(float* row, size_t head_dim) {
  float joined[2 * kLanes];
  for (size_t i = 0; i + 2 * kLanes <= head_dim; i += 2 * kLanes) {
    for (size_t j = 0; j < 2 * kLanes; ++j) joined[j] = row[i + j / 2 + j % 2 * kLanes];
    std::copy(joined, joined + 2 * kLanes, row + i);
  }
}

// A row as three bf16 terms that add up to it; the third is 0 for fp16, the second too for bf16.
HWY_INLINE void SplitTerms(const float* row, size_t head_dim, size_t term_stride, uint16_t* to) {
  for (size_t i = 0; i < head_dim; ++i) {
    float rest = row[i];
    for (size_t term = 0; term < 3; ++term) {
      to[term * term_stride + i] = FloatToBf16(rest);
      rest -= Bf16ToFloat(to[term * term_stride + i]);
    }
  }
}

// Sums of interleaved pairs back into order: of each 32 elements, the first vector holds those in
// the lower halves of blocks of 8, the second those in the upper halves.
HWY_INLINE void JoinPairs(float* row, size_t head_dim) {
  float joined[2 * kLanes];
  for (size_t i = 0; i + 2 * kLanes <= head_dim; i += 2 * kLanes) {
    for (size_t j = 0; j < 2 * kLanes; ++j) {
      joined[j] = row[i + j / 8 * 4 + j % 4 + j % 8 / 4 * kLanes];
    }
    std::copy(joined, joined + 2 * kLanes, row + i);
  }
}

template <typename To, typename Convert>
HWY_INLINE void StoreScaled(const float* HWY_RESTRICT from, size_t count, float factor,
                            To* HWY_RESTRICT to, Convert convert) {
  for (size_t i = 0; i < count; ++i) to[i] = convert(from[i] * factor);
}

HWY_INLINE void StoreOut(DType dtype, void* out, int64_t at, const float* from, size_t count,
                         float factor) {
  if (dtype == DType::kF32) {
    return StoreScaled(from, count, factor, static_cast<float*>(out) + at,
                       [](float x) { return x; });
  }
  auto* halves = static_cast<uint16_t*>(out) + at;
  if (dtype == DType::kBF16) return StoreScaled(from, count, factor, halves, FloatToBf16);
  return StoreScaled(from, count, factor, halves, FloatToFp16);
}

}  // namespace HWY_NAMESPACE
}  // namespace quire::kernels::cpu

HWY_AFTER_NAMESPACE();

#endif  // include guard
