// Arithmetic of rows-inl.h on one-byte types by bf16 pairs: a look-up of 128 entries makes codes
// bf16, exactly, in registers. Code -128 of int8, which is never written, reads as -127.
#if defined(QUIRE_KERNELS_CPU_CODES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIRE_KERNELS_CPU_CODES_INL_H_
#undef QUIRE_KERNELS_CPU_CODES_INL_H_
#else
#define QUIRE_KERNELS_CPU_CODES_INL_H_
#endif

#include <bit>
#include <cstddef>
#include <cstdint>

#include "kernels/cpu/pairs-inl.h"
#include "kernels/cpu/simd-inl.h"
#include "kernels/cpu/tile.h"

QUIRE_BEFORE_NAMESPACE();

namespace quire::kernels::cpu {
namespace HWY_NAMESPACE {
#if QUIRE_BF16_PAIRS

// integer * 2^exponent, integer in 0..127.
constexpr uint32_t Bf16Bits(uint32_t integer, uint32_t exponent) {
  if (integer == 0) return 0;
  const auto top = static_cast<uint32_t>(std::bit_width(integer)) - 1;
  return ((127 + exponent + top) << 7) | ((integer << (7 - top)) & 0x7f);
}

constexpr uint32_t Bf16OfCode(DType type, uint32_t code) {
  if (type == DType::kI8) return Bf16Bits(code, 0);
  if (code == 0x7f) return 0x7fc0;
  const uint32_t exponent = code >> 3;
  if (exponent == 0) return Bf16Bits(code, static_cast<uint32_t>(-9));
  return ((exponent + 120) << 7) | ((code & 7) << 4);
}

// Lower and upper bytes of the bf16 of codes 0..127.
template <DType kType>
struct CodeTable {
  constexpr CodeTable() {
    for (uint32_t code = 0; code < 128; ++code) {
      low[code] = static_cast<uint8_t>(Bf16OfCode(kType, code) & 0xff);
      high[code] = static_cast<uint8_t>(Bf16OfCode(kType, code) >> 8);
    }
  }

  alignas(64) uint8_t low[128]{};
  alignas(64) uint8_t high[128]{};
};

template <DType kType>
alignas(64) constexpr CodeTable<kType> kCodeTable;

template <DType kType, int kTerms>
struct Codes : Pairs<kTerms> {
  using typename Pairs<kTerms>::Vector;

  // Codes so that interleaving, which works on 128-bit blocks, takes 0..31 and then 32..63.
  static HWY_INLINE __m512i Order(__m512i codes) {
    return _mm512_permutexvar_epi64(_mm512_set_epi64(7, 3, 6, 2, 5, 1, 4, 0), codes);
  }

  static HWY_INLINE __m512i LoadCodes(const std::byte* row) {
    return Order(_mm512_loadu_si512(row));
  }

  static HWY_INLINE __m512i LoadHalf(const std::byte* row) {
    return Order(_mm512_maskz_loadu_epi8(0xffffffffu, row));
  }

  static HWY_INLINE __m512i LookUp(const uint8_t* table, __m512i index) {
    return _mm512_permutex2var_epi8(_mm512_load_si512(table), index, _mm512_load_si512(table + 64));
  }

  // The lower 8 codes of each block, then the upper 8.
  static HWY_INLINE void Expand(__m512i codes, Vector* v) {
    __m512i index = codes;
    if constexpr (kType == DType::kI8) {
      index = _mm512_min_epu8(_mm512_abs_epi8(codes), _mm512_set1_epi8(127));
    }
    const __m512i low = LookUp(kCodeTable<kType>.low, index);
    // The sign bit from the code, all else from the table.
    const __m512i high = _mm512_ternarylogic_epi32(_mm512_set1_epi8(-128), codes,
                                                   LookUp(kCodeTable<kType>.high, index), 0xca);
    v[0] = Vector{_mm512_unpacklo_epi8(low, high)};
    v[1] = Vector{_mm512_unpackhi_epi8(low, high)};
  }

  template <int kRows>
  static HWY_INLINE void AddDots(const QueryRows& query, size_t row, const std::byte* const* keys,
                                 VF* sums) {
    Vector k[4][2];
    size_t i = 0;
    for (; i + 2 * kPairElements <= query.head_dim; i += 2 * kPairElements) {
      QUIRE_UNROLL for (int t = 0; t < 4; ++t) Expand(LoadCodes(keys[t] + i), k[t]);
      const Vector first[4] = {k[0][0], k[1][0], k[2][0], k[3][0]};
      Pairs<kTerms>::template AddKeys<kRows>(query, row, i, first, sums);
      const Vector second[4] = {k[0][1], k[1][1], k[2][1], k[3][1]};
      Pairs<kTerms>::template AddKeys<kRows>(query, row, i + kPairElements, second, sums);
    }
    if (i == query.head_dim) return;
    QUIRE_UNROLL for (int t = 0; t < 4; ++t) Expand(LoadHalf(keys[t] + i), k[t]);
    const Vector last[4] = {k[0][0], k[1][0], k[2][0], k[3][0]};
    Pairs<kTerms>::template AddKeys<kRows>(query, row, i, last, sums);
  }

  // Rows are interleaved as codes: then what comes out are pairs, in the order of Pairs.
  template <int kVectors>
  static HWY_INLINE void LoadValues(const std::byte* const* rows, size_t at, Vector* v) {
    if constexpr (kVectors == 2) {
      Expand(_mm512_unpacklo_epi8(LoadHalf(rows[0] + at), LoadHalf(rows[1] + at)), v);
    } else {
      QUIRE_UNROLL for (int j = 0; j < kVectors; j += 4) {
        const __m512i first = LoadCodes(rows[0] + at + VectorAt(j));
        const __m512i second = LoadCodes(rows[1] + at + VectorAt(j));
        Expand(_mm512_unpacklo_epi8(first, second), v + j);
        Expand(_mm512_unpackhi_epi8(first, second), v + j + 2);
      }
    }
  }
};

#endif  // QUIRE_BF16_PAIRS
}  // namespace HWY_NAMESPACE
}  // namespace quire::kernels::cpu

HWY_AFTER_NAMESPACE();

#endif  // include guard
