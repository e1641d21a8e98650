// Arithmetic of rows-inl.h on fp32: stored elements are converted as they are loaded.
#if defined(QUIRE_KERNELS_CPU_FLOATS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIRE_KERNELS_CPU_FLOATS_INL_H_
#undef QUIRE_KERNELS_CPU_FLOATS_INL_H_
#else
#define QUIRE_KERNELS_CPU_FLOATS_INL_H_
#endif

#include "kernels/cpu/simd-inl.h"
#include "kernels/cpu/tile.h"

HWY_BEFORE_NAMESPACE();

namespace quire::kernels::cpu {
namespace HWY_NAMESPACE {

template <DType kType>
struct Floats {
  using Vector = VF;
  using Element = Stored<kType>;
  static constexpr int kTokens = 1;
  static constexpr int kQuadFloats = 4;

  // One vector of each.
  template <int kRows>
  static HWY_INLINE void AddProducts(const float* HWY_RESTRICT q, size_t head_dim, const VF* k,
                                     VF* sums) {
    QUIRE_UNROLL for (int r = 0; r < kRows; ++r) {
      const VF query = hn::Load(F32(), q + static_cast<size_t>(r) * head_dim);
      QUIRE_UNROLL for (int t = 0; t < 4; ++t) {
        sums[r * 4 + t] = hn::MulAdd(query, k[t], sums[r * 4 + t]);
      }
    }
  }

  template <int kRows>
  static HWY_INLINE void AddDots(const QueryRows& query, size_t row, const std::byte* const* keys,
                                 VF* sums) {
    const size_t head_dim = query.head_dim;
    const float* HWY_RESTRICT q = query.at + row * head_dim;
    VF k[4];
    size_t i = 0;
    for (; i + 2 * kLanes <= head_dim; i += 2 * kLanes) {
      QUIRE_UNROLL for (int t = 0; t < 4; ++t) k[t] = Element::First(keys[t], i);
      AddProducts<kRows>(q + i, head_dim, k, sums);
      QUIRE_UNROLL for (int t = 0; t < 4; ++t) k[t] = Element::Second(keys[t], i);
      AddProducts<kRows>(q + i + kLanes, head_dim, k, sums);
    }
    for (; i < head_dim; i += kLanes) {
      QUIRE_UNROLL for (int t = 0; t < 4; ++t) k[t] = Element::Load(keys[t], i);
      AddProducts<kRows>(q + i, head_dim, k, sums);
    }
  }

  // Pairs as First and Second.
  template <int kVectors>
  static HWY_INLINE void LoadValues(const std::byte* const* rows, size_t at, VF* v) {
    if constexpr (kVectors == 1) {
      v[0] = Element::Load(rows[0], at);
    } else {
      QUIRE_UNROLL for (int j = 0; j < kVectors; j += 2) {
        v[j] = Element::First(rows[0], at + VectorAt(j));
        v[j + 1] = Element::Second(rows[0], at + VectorAt(j));
      }
    }
  }

  static HWY_INLINE void StoreWeights(VF p, float* weights, size_t t) {
    hn::Store(p, F32(), weights + t);
  }

  static HWY_INLINE VF LoadWeight(const float* quad, int t) { return hn::Set(F32(), quad[t]); }

  static HWY_INLINE VF MultiplyAdd(VF weight, VF value, VF sum) {
    return hn::MulAdd(weight, value, sum);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace quire::kernels::cpu

HWY_AFTER_NAMESPACE();

#endif  // include guard
