// Arithmetic of rows-inl.h on bf16, by the instruction that multiplies two pairs a lane and adds
// them to an fp32 sum: twice the rate of fp32 multiply-adds, and no conversion.
//
// Queries are kTerms bf16 terms that add up to them, probabilities one term with bf16 queries, else
// two. Dot products take elements as they lie. Weighted sums interleave two rows, which puts
// outputs into the order of PairDimension. One-byte types become bf16, exactly, a tile at a time.
#if defined(QUIRE_KERNELS_CPU_PAIRS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIRE_KERNELS_CPU_PAIRS_INL_H_
#undef QUIRE_KERNELS_CPU_PAIRS_INL_H_
#else
#define QUIRE_KERNELS_CPU_PAIRS_INL_H_
#endif

#include <cstddef>
#include <cstring>

#include "kernels/cpu/simd-inl.h"
#include "kernels/cpu/tile.h"

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
  // Outputs of bf16 queries round no finer than bf16 probabilities do.
  static constexpr int kWeightTerms = kTerms == 1 ? 1 : 2;
  static constexpr int kQuadFloats = 2 * kWeightTerms;

  static HWY_INLINE Vector LoadElements(const void* row, size_t element) {
    return hn::LoadU(U16(), static_cast<const uint16_t*>(row) + element);
  }

  static HWY_INLINE VF AddProducts(Vector a, Vector b, VF sum) {
    return VF{_mm512_dpbf16_ps(sum.raw, (__m512bh)a.raw, (__m512bh)b.raw)};
  }

  // Four vectors of keys, from element `at` on. Queries are [term][row][element] of half the size.
  template <int kRows>
  static HWY_INLINE void AddKeys(const QueryRows& query, size_t row, size_t at, const Vector* k,
                                 VF* sums) {
    const auto* q = reinterpret_cast<const uint16_t*>(query.at) + row * query.head_dim;
    QUIRE_UNROLL for (size_t term = 0; term < kTerms; ++term) {
      QUIRE_UNROLL for (size_t r = 0; r < kRows; ++r) {
        const Vector one = LoadElements(q + (term * query.rows + r) * query.head_dim, at);
        QUIRE_UNROLL for (size_t t = 0; t < 4; ++t) {
          sums[r * 4 + t] = AddProducts(one, k[t], sums[r * 4 + t]);
        }
      }
    }
  }

  template <int kRows>
  static HWY_INLINE void AddDots(const QueryRows& query, size_t row, const std::byte* const* keys,
                                 VF* sums) {
    for (size_t i = 0; i < query.head_dim; i += kPairElements) {
      Vector k[4];
      QUIRE_UNROLL for (int t = 0; t < 4; ++t) k[t] = LoadElements(keys[t], i);
      AddKeys<kRows>(query, row, i, k, sums);
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

  // Pairs of neighbouring probabilities, rounded; with more than one term, of each two
  // probabilities the pair of their first terms and then that of their second terms.
  static HWY_INLINE void StoreWeights(VF p, float* weights, size_t t) {
    if constexpr (kWeightTerms == 1) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(weights + t / 2),
                          (__m256i)_mm512_cvtneps_pbh(p.raw));
      return;
    }
    const hn::Rebind<uint32_t, F32> bits;
    const auto first = hn::And(hn::BitCast(bits, p), hn::Set(bits, 0xffff0000u));
    const VF second = hn::Sub(p, hn::BitCast(F32(), first));
    const auto packed = _mm512_cvtne2ps_pbh(second.raw, hn::BitCast(F32(), first).raw);
    const __m512i order = _mm512_set_epi32(15, 7, 14, 6, 13, 5, 12, 4, 11, 3, 10, 2, 9, 1, 8, 0);
    _mm512_storeu_si512(weights + t, _mm512_permutexvar_epi32(order, (__m512i)packed));
  }

  struct Weight {
    Vector term[kWeightTerms];
  };

  static HWY_INLINE Weight LoadWeight(const float* quad, int t) {
    Weight weight;
    QUIRE_UNROLL for (int i = 0; i < kWeightTerms; ++i) {
      weight.term[i] = hn::BitCast(U16(), hn::Set(F32(), quad[t / 2 * kWeightTerms + i]));
    }
    return weight;
  }

  static HWY_INLINE VF MultiplyAdd(const Weight& weight, Vector value, VF sum) {
    QUIRE_UNROLL for (int i = 0; i < kWeightTerms; ++i) {
      sum = AddProducts(weight.term[i], value, sum);
    }
    return sum;
  }
};

#endif  // QUIRE_BF16_PAIRS
}  // namespace HWY_NAMESPACE
}  // namespace quire::kernels::cpu

HWY_AFTER_NAMESPACE();

#endif  // include guard
