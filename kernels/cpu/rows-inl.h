// Query rows against a tile of keys: every stored row is loaded once and meets several query rows
// in registers (kRows x kTokens dot products, then kRows x kVectors weighted sums).
//
// How elements meet is the arithmetic A: Floats or Pairs. It has
//   AddDots      sums[r][t] += q[r] . keys[t] per lane, for kRows rows and four keys
//   kTokens      stored rows that a weighted sum takes at once
//   LoadValues   kTokens rows as kVectors vectors
//   kQuadFloats  floats that hold the probabilities of four keys
//   StoreWeights probabilities as LoadWeight finds them, that of key t % 4 of a quad
//   MultiplyAdd  sum + weight * value
#if defined(QUIRE_KERNELS_CPU_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIRE_KERNELS_CPU_ROWS_INL_H_
#undef QUIRE_KERNELS_CPU_ROWS_INL_H_
#else
#define QUIRE_KERNELS_CPU_ROWS_INL_H_
#endif

#include <algorithm>

#include "kernels/cpu/simd-inl.h"
#include "kernels/cpu/softmax-inl.h"
#include "kernels/cpu/tile.h"

QUIRE_BEFORE_NAMESPACE();

namespace quire::kernels::cpu {
namespace HWY_NAMESPACE {

// All scores of a tile, block of rows after block of rows, each [quad][row][4] (softmax-inl.h).
// Keys past the tile's end repeat the last one; their scores are masked.
template <typename A, int kRows>
HWY_INLINE void DotRows(const KvTile& tile, const QueryRows& q, int64_t rows, float* scores) {
  constexpr int kTokens = kAccumulators / kRows;
  for (int64_t t = 0; t < tile.tokens; t += kTokens) {
    for (int64_t r = 0; r < rows; r += kRows) {
      VF sums[kAccumulators];
      QUIRE_UNROLL for (int i = 0; i < kAccumulators; ++i) sums[i] = hn::Zero(F32());
      // Four keys at a time keep the lines of a block nearly in order, which prefetchers need.
      QUIRE_UNROLL for (int64_t i = 0; i < kTokens; i += 4) {
        if (r == 0) tile.ahead->Advance(4 * tile.row_bytes);
        A::template AddDots<kRows>(q, static_cast<size_t>(r), tile.k + t + i, sums + i * kRows);
      }
      float* to = scores + r * kPlanTileTokens + t * kRows;
      QUIRE_UNROLL for (int i = 0; i < kAccumulators; i += static_cast<int>(kLanes)) {
        hn::StoreU(SumLanes(sums + i), F32(), to + i);
      }
    }
  }
}

// Rows of a weighted sum between requests for memory.
constexpr int kAheadTokens = 8;

// About the bytes of stored rows that all query rows and columns meet before the next ones do:
// memory is then read nearly in order, whatever the length of a step.
constexpr int64_t kSumBytes = 4096;

// What SumBlock works on: out[r] += sum over t in begin..end - 1 of weights[r][t] * values[t].
struct WeightedSum {
  const KvTile& tile;
  int begin;
  int end;
  const float* weights;
  size_t head_dim;
  float* out;
  int64_t ahead_bytes;  // to ask for with every kAheadTokens rows
};

// Stored rows of key u of a quad, and of A::kTokens - 1 more.
template <typename A, int kRows, int kVectors>
HWY_INLINE void AddValues(const std::byte* const* rows, size_t at, const float* quad, int u,
                          VF* sums) {
  typename A::Vector v[kVectors];
  A::template LoadValues<kVectors>(rows, at, v);
  QUIRE_UNROLL for (int r = 0; r < kRows; ++r) {
    const auto weight = A::LoadWeight(quad + r * A::kQuadFloats, u);
    QUIRE_UNROLL for (int j = 0; j < kVectors; ++j) {
      sums[r * kVectors + j] = A::MultiplyAdd(weight, v[j], sums[r * kVectors + j]);
    }
  }
}

// kRows rows, kVectors vectors from element `at` on. The last quad may reach past the end: there
// weights are 0 and rows repeat the last one.
template <typename A, int kRows, int kVectors>
HWY_INLINE void SumBlock(const WeightedSum& w, size_t at) {
  const F32 d;
  VF sums[kRows * kVectors];
  float* HWY_RESTRICT out = w.out + at;
  QUIRE_UNROLL for (int r = 0; r < kRows; ++r) {
    QUIRE_UNROLL for (int j = 0; j < kVectors; ++j) {
      sums[r * kVectors + j] = hn::Load(d, out + static_cast<size_t>(r) * w.head_dim + VectorAt(j));
    }
  }
  for (int t = w.begin; t < w.end;) {
    w.tile.ahead->Advance(w.ahead_bytes);
    const int end = std::min(t + kAheadTokens, w.end);
    for (; t < end; t += static_cast<int>(kQuad)) {
      const float* quad = w.weights + t * kRows / 4 * A::kQuadFloats;
      for (int u = 0; u < static_cast<int>(kQuad); u += A::kTokens) {
        AddValues<A, kRows, kVectors>(w.tile.v + t + u, at, quad, u, sums);
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
template <typename A, int kRows, int kVectors>
HWY_INLINE void SumColumns(const WeightedSum& w, size_t at) {
  for (; at + kVectors * kLanes <= w.head_dim; at += kVectors * kLanes) {
    SumBlock<A, kRows, kVectors>(w, at);
  }
  if constexpr (kVectors > A::kTokens) SumColumns<A, kRows, kVectors / 2>(w, at);
}

// Whole requests for memory, and so whole quads. More rows compute longer on what is read, and then
// loading and storing sums less often gains more than reading in order.
HWY_INLINE int SumStep(int64_t row_bytes, bool many_rows) {
  const int64_t bytes = many_rows ? 2 * kSumBytes : kSumBytes;
  return std::max(1, static_cast<int>(bytes / row_bytes / kAheadTokens)) * kAheadTokens;
}

template <typename A, int kRows>
HWY_INLINE void SumRows(const KvTile& tile, const float* weights, int64_t rows, size_t head_dim,
                        float* out) {
  constexpr int kVectors = std::min(8, kAccumulators / kRows);
  // Every pass over the tile asks for its share of what comes next.
  const int64_t columns = static_cast<int64_t>(kVectors * kLanes);
  const int64_t passes =
      (rows + kRows - 1) / kRows * ((static_cast<int64_t>(head_dim) + columns - 1) / columns);
  const int64_t ahead = kAheadTokens * tile.row_bytes / passes;
  const int step = SumStep(tile.row_bytes, rows > kRows);
  for (int t = 0; t < tile.tokens; t += step) {
    const int end = std::min(t + step, tile.tokens);
    for (int64_t r = 0; r < rows; r += kRows) {
      SumColumns<A, kRows, kVectors>({tile, t, end, weights + r * kPlanTileTokens, head_dim,
                                      out + static_cast<size_t>(r) * head_dim, ahead},
                                     0);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace quire::kernels::cpu

HWY_AFTER_NAMESPACE();

#endif  // include guard
