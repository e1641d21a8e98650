// Few query rows against a tile of keys: every stored row is loaded once and meets several query
// rows in registers (kRows x kTokens dot products, then kRows x kVectors weighted sums).
#if defined(QUIRE_KERNELS_CPU_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIRE_KERNELS_CPU_ROWS_INL_H_
#undef QUIRE_KERNELS_CPU_ROWS_INL_H_
#else
#define QUIRE_KERNELS_CPU_ROWS_INL_H_
#endif

#include <algorithm>

#include "kernels/cpu/simd-inl.h"
#include "kernels/cpu/tile.h"

HWY_BEFORE_NAMESPACE();

namespace quire::kernels::cpu {
namespace HWY_NAMESPACE {

// Asks for the cache lines of a row that the next tile will use.
HWY_INLINE void PrefetchRow(const std::byte* row, size_t bytes) {
  for (size_t line = 0; line < bytes; line += 64) __builtin_prefetch(row + line, 0, 2);
}

// scores[r][t] = q[r] . keys[t] for kRows query rows and kTokens keys.
template <DType kType, int kRows, int kTokens>
HWY_INLINE void DotBlock(const float* HWY_RESTRICT q, size_t head_dim, const std::byte* const* keys,
                         float* HWY_RESTRICT scores) {
  const F32 d;
  VF sums[kRows * kTokens];
  QUIRE_UNROLL for (int i = 0; i < kRows * kTokens; ++i) sums[i] = hn::Zero(d);
  for (size_t i = 0; i < head_dim; i += kLanes) {
    VF k[kTokens];
    QUIRE_UNROLL for (int t = 0; t < kTokens; ++t) k[t] = Stored<kType>::Load(keys[t], i);
    QUIRE_UNROLL for (int r = 0; r < kRows; ++r) {
      const VF query = hn::Load(d, q + static_cast<size_t>(r) * head_dim + i);
      QUIRE_UNROLL for (int t = 0; t < kTokens; ++t) {
        sums[r * kTokens + t] = hn::MulAdd(query, k[t], sums[r * kTokens + t]);
      }
    }
  }
  QUIRE_UNROLL for (int r = 0; r < kRows; ++r) {
    QUIRE_UNROLL for (int t = 0; t < kTokens; t += 4) {
      StoreFourSums(sums + r * kTokens + t, scores + r * kPlanTileTokens + t);
    }
  }
}

// All scores of a tile. Keys past the tile's end repeat the last one; their scores are masked.
template <DType kType, int kRows>
HWY_INLINE void DotRows(const KvTile& tile, const float* q, int64_t rows, size_t head_dim,
                        float* scores) {
  constexpr int kTokens = kAccumulators / kRows;
  const auto row_bytes = static_cast<size_t>(tile.row_bytes);
  for (int t = 0; t < tile.tokens; t += kTokens) {
    const int last = std::min(t + kTokens, tile.next_tokens);
    for (int n = t; n < last; ++n) PrefetchRow(tile.next_k[n], row_bytes);
    for (int64_t r = 0; r < rows; r += kRows) {
      DotBlock<kType, kRows, kTokens>(q + static_cast<size_t>(r) * head_dim, head_dim, tile.k + t,
                                      scores + r * kPlanTileTokens + t);
    }
  }
}

// out[r] = out[r] * decay[r] + sum over t of p[r][t] * values[t], kVectors vectors of head_dim.
template <DType kType, int kRows, int kVectors, bool kPrefetch>
HWY_INLINE void SumBlock(const KvTile& tile, const float* HWY_RESTRICT p,
                         const float* HWY_RESTRICT decay, size_t at, size_t head_dim,
                         float* HWY_RESTRICT out) {
  const F32 d;
  VF sums[kRows * kVectors];
  QUIRE_UNROLL for (int r = 0; r < kRows; ++r) {
    QUIRE_UNROLL for (int j = 0; j < kVectors; ++j) {
      const float* from = out + static_cast<size_t>(r) * head_dim + at + j * kLanes;
      sums[r * kVectors + j] = hn::Mul(hn::Load(d, from), hn::Set(d, decay[r]));
    }
  }
  for (int t = 0; t < tile.tokens; ++t) {
    if (kPrefetch && t < tile.next_tokens) {
      PrefetchRow(tile.next_v[t], static_cast<size_t>(tile.row_bytes));
    }
    VF v[kVectors];
    QUIRE_UNROLL for (int j = 0; j < kVectors; ++j) {
      v[j] = Stored<kType>::Load(tile.v[t], at + j * kLanes);
    }
    QUIRE_UNROLL for (int r = 0; r < kRows; ++r) {
      const VF weight = hn::Set(d, p[r * kPlanTileTokens + t]);
      QUIRE_UNROLL for (int j = 0; j < kVectors; ++j) {
        sums[r * kVectors + j] = hn::MulAdd(weight, v[j], sums[r * kVectors + j]);
      }
    }
  }
  QUIRE_UNROLL for (int r = 0; r < kRows; ++r) {
    QUIRE_UNROLL for (int j = 0; j < kVectors; ++j) {
      hn::Store(sums[r * kVectors + j], d,
                out + static_cast<size_t>(r) * head_dim + at + j * kLanes);
    }
  }
}

template <DType kType, int kRows>
HWY_INLINE void SumRows(const KvTile& tile, const float* p, const float* decay, int64_t rows,
                        size_t head_dim, float* out) {
  constexpr int kVectors = kAccumulators / kRows;
  for (int64_t r = 0; r < rows; r += kRows) {
    const float* weights = p + r * kPlanTileTokens;
    float* to = out + static_cast<size_t>(r) * head_dim;
    size_t at = 0;
    for (; at + kVectors * kLanes <= head_dim; at += kVectors * kLanes) {
      if (at == 0 && r == 0) {
        SumBlock<kType, kRows, kVectors, true>(tile, weights, decay + r, at, head_dim, to);
      } else {
        SumBlock<kType, kRows, kVectors, false>(tile, weights, decay + r, at, head_dim, to);
      }
    }
    for (; at < head_dim; at += kLanes) {
      SumBlock<kType, kRows, 1, false>(tile, weights, decay + r, at, head_dim, to);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace quire::kernels::cpu

HWY_AFTER_NAMESPACE();

#endif  // include guard
