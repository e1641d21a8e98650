// Many query rows against a tile of keys: the tile becomes fp32 once, K transposed, and both
// products run as small matrix products with kRows x 2 vectors of accumulators.
#if defined(QUIRE_KERNELS_CPU_GEMM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIRE_KERNELS_CPU_GEMM_INL_H_
#undef QUIRE_KERNELS_CPU_GEMM_INL_H_
#else
#define QUIRE_KERNELS_CPU_GEMM_INL_H_
#endif

#include "kernels/cpu/simd-inl.h"
#include "kernels/cpu/tile.h"

HWY_BEFORE_NAMESPACE();

namespace quire::kernels::cpu {
namespace HWY_NAMESPACE {

// Four keys: to[i][0..3] = element i of each. `to` has rows of 64.
template <DType kType>
HWY_INLINE void TransposeFour(const std::byte* const* keys, size_t head_dim,
                              float* HWY_RESTRICT to) {
  for (size_t i = 0; i < head_dim; i += kLanes) {
    VF k[4];
    QUIRE_UNROLL for (int t = 0; t < 4; ++t) k[t] = Stored<kType>::Load(keys[t], i);
#if HWY_TARGET == HWY_SCALAR
    for (int t = 0; t < 4; ++t) to[i * kPlanTileTokens + t] = hn::GetLane(k[t]);
#else
    const F32 d;
    const hn::RepartitionToWide<F32> pairs;
    const hn::CappedTag<float, 4> quad;
    const auto ab = hn::BitCast(pairs, hn::InterleaveLower(d, k[0], k[1]));
    const auto cd = hn::BitCast(pairs, hn::InterleaveLower(d, k[2], k[3]));
    const auto ef = hn::BitCast(pairs, hn::InterleaveUpper(d, k[0], k[1]));
    const auto gh = hn::BitCast(pairs, hn::InterleaveUpper(d, k[2], k[3]));
    HWY_ALIGN float lanes[4][kLanes];
    hn::Store(hn::BitCast(d, hn::InterleaveLower(pairs, ab, cd)), d, lanes[0]);
    hn::Store(hn::BitCast(d, hn::InterleaveUpper(pairs, ab, cd)), d, lanes[1]);
    hn::Store(hn::BitCast(d, hn::InterleaveLower(pairs, ef, gh)), d, lanes[2]);
    hn::Store(hn::BitCast(d, hn::InterleaveUpper(pairs, ef, gh)), d, lanes[3]);
    for (size_t block = 0; block < kLanes; block += 4) {
      QUIRE_UNROLL for (size_t j = 0; j < 4; ++j) {
        hn::Store(hn::Load(quad, lanes[j] + block), quad, to + (i + block + j) * kPlanTileTokens);
      }
    }
#endif
  }
}

template <DType kType>
void LoadTile(const KvTile& tile, size_t head_dim, float* HWY_RESTRICT k_tile,
              float* HWY_RESTRICT v_tile) {
  // Columns past the tile's end keep what they held; their scores are masked.
  for (int t = 0; t < tile.tokens; t += 4) {
    tile.ahead->Advance(4 * tile.row_bytes);
    TransposeFour<kType>(tile.k + t, head_dim, k_tile + t);
  }
  const F32 d;
  for (int t = 0; t < tile.tokens; ++t) {
    tile.ahead->Advance(tile.row_bytes);
    float* to = v_tile + static_cast<size_t>(t) * head_dim;
    for (size_t i = 0; i < head_dim; i += kLanes) {
      hn::Store(Stored<kType>::Load(tile.v[t], i), d, to + i);
    }
  }
}

// c[r][0..2 vectors) = (add ? c : 0) + a[r][0..depth) * b[0..depth)[...].
struct Product {
  const float* a;
  size_t a_stride;
  const float* b;
  size_t b_stride;
  size_t depth;
  float* c;
  size_t c_stride;
  bool add;
};

template <int kRows, int kVectors>
HWY_INLINE void ProductBlock(const Product& m) {
  const F32 d;
  VF sums[kRows * kVectors];
  QUIRE_UNROLL for (int r = 0; r < kRows; ++r) {
    QUIRE_UNROLL for (int j = 0; j < kVectors; ++j) {
      const float* from = m.c + static_cast<size_t>(r) * m.c_stride + VectorAt(j);
      sums[r * kVectors + j] = m.add ? hn::Load(d, from) : hn::Zero(d);
    }
  }
  const float* HWY_RESTRICT b = m.b;
  const float* HWY_RESTRICT a = m.a;
  for (size_t i = 0; i < m.depth; ++i, b += m.b_stride) {
    VF column[kVectors];
    QUIRE_UNROLL for (int j = 0; j < kVectors; ++j) column[j] = hn::Load(d, b + VectorAt(j));
    QUIRE_UNROLL for (int r = 0; r < kRows; ++r) {
      const VF factor = hn::Set(d, a[static_cast<size_t>(r) * m.a_stride + i]);
      QUIRE_UNROLL for (int j = 0; j < kVectors; ++j) {
        sums[r * kVectors + j] = hn::MulAdd(factor, column[j], sums[r * kVectors + j]);
      }
    }
  }
  QUIRE_UNROLL for (int r = 0; r < kRows; ++r) {
    QUIRE_UNROLL for (int j = 0; j < kVectors; ++j) {
      hn::Store(sums[r * kVectors + j], d, m.c + static_cast<size_t>(r) * m.c_stride + VectorAt(j));
    }
  }
}

// All of c: `rows` (a multiple of kRows) by `columns` (a multiple of the lane count).
HWY_INLINE void MultiplyAll(Product m, int64_t rows, size_t columns) {
  constexpr int kRows = kAccumulators / 2;
  const Product whole = m;
  for (size_t at = 0; at < columns;) {
    const bool two = at + 2 * kLanes <= columns;
    for (int64_t r = 0; r < rows; r += kRows) {
      m.a = whole.a + static_cast<size_t>(r) * m.a_stride;
      m.b = whole.b + at;
      m.c = whole.c + static_cast<size_t>(r) * m.c_stride + at;
      if (two) {
        ProductBlock<kRows, 2>(m);
      } else {
        ProductBlock<kRows, 1>(m);
      }
    }
    at += two ? 2 * kLanes : kLanes;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace quire::kernels::cpu

HWY_AFTER_NAMESPACE();

#endif  // include guard
