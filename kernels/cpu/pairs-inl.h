// Arithmetic of rows-inl.h on bf16, by the instruction that multiplies two pairs a lane and adds
// them to an fp32 sum: twice the rate of fp32 multiply-adds, and no conversion.
//
// Queries are kTerms bf16 terms that add up to them, probabilities are rounded to bf16. Dot
// products take elements as they lie. Weighted sums interleave two rows, which puts outputs into
// the order of PairDimension. One-byte types become bf16, exactly, a tile at a time.
#if defined(QUIRE_KERNELS_CPU_PAIRS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIRE_KERNELS_CPU_PAIRS_INL_H_
#undef QUIRE_KERNELS_CPU_PAIRS_INL_H_
#else
#define QUIRE_KERNELS_CPU_PAIRS_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "kernels/cpu/simd-inl.h"
#include "kernels/cpu/tile.h"
#include "kernels/dtype.h"

QUIRE_BEFORE_NAMESPACE();

namespace quire::kernels::cpu {
namespace HWY_NAMESPACE {

// Elements of a vector of bf16. Head sizes that are no multiple stay with Floats.
constexpr size_t kPairElements = 2 * kLanes;

// Stored types that bf16 holds exactly.
template <DType kType>
constexpr bool kFitsPairs = kType == DType::kBF16 || kType == DType::kE4M3 || kType == DType::kI8;

#if QUIRE_BF16_PAIRS

template <int kTerms>
struct Pairs {
  using U16 = hn::ScalableTag<uint16_t>;
  using Vector = hn::Vec<U16>;
  static constexpr int kTokens = 2;

  static HWY_INLINE Vector LoadElements(const void* row, size_t element) {
    return hn::LoadU(U16(), static_cast<const uint16_t*>(row) + element);
  }

  static HWY_INLINE VF AddProducts(Vector a, Vector b, VF sum) {
    return VF{_mm512_dpbf16_ps(sum.raw, (__m512bh)a.raw, (__m512bh)b.raw)};
  }

  // Queries are [term][row][element] of half the size.
  template <int kRows>
  static HWY_INLINE void AddDots(const QueryRows& query, size_t row, const std::byte* const* keys,
                                 VF* sums) {
    const size_t head_dim = query.head_dim;
    const auto* q = reinterpret_cast<const uint16_t*>(query.at) + row * head_dim;
    for (size_t i = 0; i < head_dim; i += kPairElements) {
      Vector k[4];
      QUIRE_UNROLL for (int t = 0; t < 4; ++t) k[t] = LoadElements(keys[t], i);
      QUIRE_UNROLL for (size_t term = 0; term < kTerms; ++term) {
        QUIRE_UNROLL for (size_t r = 0; r < kRows; ++r) {
          const Vector one = LoadElements(q + (term * query.rows + r) * head_dim, i);
          QUIRE_UNROLL for (size_t t = 0; t < 4; ++t) {
            sums[r * 4 + t] = AddProducts(one, k[t], sums[r * 4 + t]);
          }
        }
      }
    }
  }

  template <int kVectors>
  static HWY_INLINE void LoadValues(const std::byte* const* rows, size_t at, Vector* v) {
    QUIRE_UNROLL for (int j = 0; j < kVectors; j += 2) {
      const Vector first = LoadElements(rows[0], at + VectorAt(j));
      const Vector second = LoadElements(rows[1], at + VectorAt(j));
      v[j] = hn::InterleaveLower(U16(), first, second);
      v[j + 1] = hn::InterleaveUpper(U16(), first, second);
    }
  }

  // Of each two probabilities, the pair of their first terms and then that of their second terms.
  static HWY_INLINE void StoreWeights(VF p, float* to) {
    const hn::Rebind<uint32_t, F32> bits;
    const auto first = hn::And(hn::BitCast(bits, p), hn::Set(bits, 0xffff0000u));
    const VF second = hn::Sub(p, hn::BitCast(F32(), first));
    const auto packed = _mm512_cvtne2ps_pbh(second.raw, hn::BitCast(F32(), first).raw);
    const __m512i order = _mm512_set_epi32(15, 7, 14, 6, 13, 5, 12, 4, 11, 3, 10, 2, 9, 1, 8, 0);
    _mm512_storeu_si512(to, _mm512_permutexvar_epi32(order, (__m512i)packed));
  }

  struct Weight {
    Vector first;
    Vector second;
  };

  static HWY_INLINE Weight LoadWeight(const float* p, int t) {
    return {hn::BitCast(U16(), hn::Set(F32(), p[t])), hn::BitCast(U16(), hn::Set(F32(), p[t + 1]))};
  }

  static HWY_INLINE VF MultiplyAdd(const Weight& weight, Vector value, VF sum) {
    return AddProducts(weight.second, value, AddProducts(weight.first, value, sum));
  }
};

// The bf16 of the codes 0..127 of a one-byte type, as lower and upper bytes.
struct PairCodes {
  alignas(64) uint8_t low[128];
  alignas(64) uint8_t high[128];
};

template <DType kType>
const PairCodes& CodesOf() {
  static const PairCodes codes = [] {
    PairCodes all;
    for (uint8_t code = 0; code < 128; ++code) {
      const uint16_t bits = FloatToBf16(LoadElement(kType, &code, 0));
      all.low[code] = static_cast<uint8_t>(bits & 0xff);
      all.high[code] = static_cast<uint8_t>(bits >> 8);
    }
    return all;
  }();
  return codes;
}

// Codes to bf16, exactly. Code -128 of int8, which is never written, reads as -127.
template <DType kType>
class Expander {
 public:
  Expander()
      : low_{Part(CodesOf<kType>().low), Part(CodesOf<kType>().low + 64)},
        high_{Part(CodesOf<kType>().high), Part(CodesOf<kType>().high + 64)} {}

  // head_dim, a multiple of 32, codes.
  HWY_INLINE void Row(const std::byte* row, size_t head_dim, uint16_t* to) const {
    size_t i = 0;
    for (; i + 64 <= head_dim; i += 64) {
      const Words words = Expand(_mm512_loadu_si512(row + i));
      _mm512_storeu_si512(to + i, words.lower);
      _mm512_storeu_si512(to + i + 32, words.upper);
    }
    if (i == head_dim) return;
    const Words words = Expand(_mm512_maskz_loadu_epi8(0xffffffffu, row + i));
    _mm512_storeu_si512(to + i, words.lower);
  }

 private:
  struct Words {
    __m512i lower;
    __m512i upper;
  };

  static HWY_INLINE __m512i Part(const uint8_t* codes) { return _mm512_load_si512(codes); }

  HWY_INLINE Words Expand(__m512i codes) const {
    // Interleaving works on 128-bit blocks: the first 32 codes go to their lower halves.
    const __m512i order = _mm512_set_epi64(7, 3, 6, 2, 5, 1, 4, 0);
    const __m512i code = _mm512_permutexvar_epi64(order, codes);
    __m512i index = code;
    if constexpr (kType == DType::kI8) {
      index = _mm512_min_epu8(_mm512_abs_epi8(code), _mm512_set1_epi8(127));
    }
    const __m512i low = _mm512_permutex2var_epi8(low_[0], index, low_[1]);
    const __m512i magnitude = _mm512_permutex2var_epi8(high_[0], index, high_[1]);
    // The sign bit from the code, all else from the table.
    const __m512i sign = _mm512_set1_epi8(-128);
    const __m512i high = _mm512_ternarylogic_epi32(sign, code, magnitude, 0xca);
    return {_mm512_unpacklo_epi8(low, high), _mm512_unpackhi_epi8(low, high)};
  }

  __m512i low_[2];
  __m512i high_[2];
};

// Every row of the tile, K before V as they lie; `k` and `v` have room for 64 rows, and `rows` then
// says where they are.
template <DType kType>
HWY_INLINE void ExpandTile(const KvTile& tile, size_t head_dim, float* k, float* v,
                           TileRows* rows) {
  const Expander<kType> expander;
  const auto expand = [&](const std::byte** row, float* memory) {
    auto* to = reinterpret_cast<uint16_t*>(memory);
    for (int t = 0; t < tile.tokens; ++t, to += head_dim) {
      if (t % 4 == 0) tile.ahead->Advance(4 * tile.row_bytes);
      expander.Row(row[t], head_dim, to);
      row[t] = reinterpret_cast<const std::byte*>(to);
    }
    rows->RepeatLast(row);
  };
  expand(rows->k, k);
  expand(rows->v, v);
}

#endif  // QUIRE_BF16_PAIRS
}  // namespace HWY_NAMESPACE
}  // namespace quire::kernels::cpu

HWY_AFTER_NAMESPACE();

#endif  // include guard
