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

// sums[r][t] += q[r] * k[t], one vector of each.
template <int kRows, int kTokens>
HWY_INLINE void AddProducts(const float* HWY_RESTRICT q, size_t head_dim, const VF* k, VF* sums) {
  QUIRE_UNROLL for (int r = 0; r < kRows; ++r) {
    const VF query = hn::Load(F32(), q + static_cast<size_t>(r) * head_dim);
    QUIRE_UNROLL for (int t = 0; t < kTokens; ++t) {
      sums[r * kTokens + t] = hn::MulAdd(query, k[t], sums[r * kTokens + t]);
    }
  }
}

// scores[r][t] = q[r] . keys[t] for kRows query rows and kTokens keys.
template <DType kType, int kRows, int kTokens>
HWY_INLINE void DotBlock(const float* HWY_RESTRICT q, size_t head_dim, const std::byte* const* keys,
                         float* HWY_RESTRICT scores) {
  VF sums[kRows * kTokens];
  QUIRE_UNROLL for (int i = 0; i < kRows * kTokens; ++i) sums[i] = hn::Zero(F32());
  VF k[kTokens];
  size_t i = 0;
  for (; i + 2 * kLanes <= head_dim; i += 2 * kLanes) {
    QUIRE_UNROLL for (int t = 0; t < kTokens; ++t) k[t] = Stored<kType>::First(keys[t], i);
    AddProducts<kRows, kTokens>(q + i, head_dim, k, sums);
    QUIRE_UNROLL for (int t = 0; t < kTokens; ++t) k[t] = Stored<kType>::Second(keys[t], i);
    AddProducts<kRows, kTokens>(q + i + kLanes, head_dim, k, sums);
  }
  for (; i < head_dim; i += kLanes) {
    QUIRE_UNROLL for (int t = 0; t < kTokens; ++t) k[t] = Stored<kType>::Load(keys[t], i);
    AddProducts<kRows, kTokens>(q + i, head_dim, k, sums);
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
  // Four keys at a time keep the lines of a block nearly in order, which prefetchers need.
  constexpr int kTokens = kRows == 1 ? 4 : kAccumulators / kRows;
  for (int t = 0; t < tile.tokens; t += kTokens) {
    tile.ahead->Advance(kTokens * tile.row_bytes);
    for (int64_t r = 0; r < rows; r += kRows) {
      DotBlock<kType, kRows, kTokens>(q + static_cast<size_t>(r) * head_dim, head_dim, tile.k + t,
                                      scores + r * kPlanTileTokens + t);
    }
  }
}

// kVectors vectors of a stored row from element `at` on; pairs as First and Second.
template <DType kType, int kVectors>
HWY_INLINE void LoadVectors(const std::byte* row, size_t at, VF* v) {
  if constexpr (kVectors == 1) {
    v[0] = Stored<kType>::Load(row, at);
  } else {
    QUIRE_UNROLL for (int j = 0; j < kVectors; j += 2) {
      v[j] = Stored<kType>::First(row, at + VectorAt(j));
      v[j + 1] = Stored<kType>::Second(row, at + VectorAt(j));
    }
  }
}

// What SumBlock works on: out[r] = out[r] * decay[r] + sum over t of p[r][t] * values[t].
struct WeightedSum {
  const KvTile& tile;
  const float* p;
  const float* decay;
  size_t head_dim;
  float* out;
  bool prefetch;  // in the first pass over the tile only
};

// kRows rows, kVectors vectors from element `at` on.
template <DType kType, int kRows, int kVectors>
HWY_INLINE void SumBlock(const WeightedSum& w, size_t at) {
  const F32 d;
  VF sums[kRows * kVectors];
  float* HWY_RESTRICT out = w.out + at;
  QUIRE_UNROLL for (int r = 0; r < kRows; ++r) {
    QUIRE_UNROLL for (int j = 0; j < kVectors; ++j) {
      const float* from = out + static_cast<size_t>(r) * w.head_dim + VectorAt(j);
      sums[r * kVectors + j] = hn::Mul(hn::Load(d, from), hn::Set(d, w.decay[r]));
    }
  }
  const bool prefetch = w.prefetch && at == 0;
  for (int t = 0; t < w.tile.tokens; ++t) {
    if (prefetch) w.tile.ahead->Advance(w.tile.row_bytes);
    VF v[kVectors];
    LoadVectors<kType, kVectors>(w.tile.v[t], at, v);
    QUIRE_UNROLL for (int r = 0; r < kRows; ++r) {
      const VF weight = hn::Set(d, w.p[r * kPlanTileTokens + t]);
      QUIRE_UNROLL for (int j = 0; j < kVectors; ++j) {
        sums[r * kVectors + j] = hn::MulAdd(weight, v[j], sums[r * kVectors + j]);
      }
    }
  }
  QUIRE_UNROLL for (int r = 0; r < kRows; ++r) {
    QUIRE_UNROLL for (int j = 0; j < kVectors; ++j) {
      hn::Store(sums[r * kVectors + j], d, out + static_cast<size_t>(r) * w.head_dim + VectorAt(j));
    }
  }
}

// From element `at` to the end, in the widest blocks that fit.
template <DType kType, int kRows, int kVectors>
HWY_INLINE void SumColumns(const WeightedSum& w, size_t at) {
  for (; at + kVectors * kLanes <= w.head_dim; at += kVectors * kLanes) {
    SumBlock<kType, kRows, kVectors>(w, at);
  }
  if constexpr (kVectors > 1) SumColumns<kType, kRows, kVectors / 2>(w, at);
}

template <DType kType, int kRows>
HWY_INLINE void SumRows(const KvTile& tile, const float* p, const float* decay, int64_t rows,
                        size_t head_dim, float* out) {
  constexpr int kVectors = std::min(8, kAccumulators / kRows);
  for (int64_t r = 0; r < rows; r += kRows) {
    SumColumns<kType, kRows, kVectors>({tile, p + r * kPlanTileTokens, decay + r, head_dim,
                                        out + static_cast<size_t>(r) * head_dim, r == 0},
                                       0);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace quire::kernels::cpu

HWY_AFTER_NAMESPACE();

#endif  // include guard
