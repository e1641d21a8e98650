// What one warp does with a tile: scores, masks, online softmax, products with V.
//
// The warp holds 16 query rows; lane l has rows l / 4 and l / 4 + 8 in all fragments. The running
// maximum is kept in score units and differences are taken before scaling, so that scores far from
// zero keep their precision. Sums are per lane until the end.
#ifndef QUIRE_KERNELS_CUDA_ATTEND_CUH_
#define QUIRE_KERNELS_CUDA_ATTEND_CUH_

#include "kernels/cuda/query.cuh"

namespace quire::kernels::QUIRE_SIMT {

template <typename T>
struct Accumulator {
  float out[T::kDim / 8][4];
  float max[2];
  float sum[2];
  float v_unit;  // scale of `out` if V has scales per token
};

template <typename T>
SIMT_DEVICE void Clear(Accumulator<T>& acc) {
  SIMT_UNROLL
  for (int n = 0; n < T::kDim / 8; ++n) {
    SIMT_UNROLL
    for (int e = 0; e < 4; ++e) acc.out[n][e] = 0.0f;
  }
  SIMT_UNROLL
  for (int r = 0; r < 2; ++r) {
    acc.max[r] = kMinusInf;
    acc.sum[r] = 0.0f;
  }
  acc.v_unit = 0.0f;
}

// Adds the products of what rounding q to the mma type left over. Rare, so it loads again rather
// than keep registers.
template <typename T, int kTiles>
SIMT_DEVICE void MultiplyRest(const AttentionArgs& args, const WarpQuery<T>& query,
                              const std::byte* tile, float (*scores)[4]) {
  const QueryRow rows[2] = {RowOf(args, query, 0), RowOf(args, query, 1)};
  SIMT_NO_UNROLL
  for (int step = 0; step < T::kSteps; ++step) {
    uint32_t rest[4];
    LoadQuery<T>(args, rows, step, true, rest);
    SIMT_UNROLL
    for (int t = 0; t < kTiles; ++t) {
      uint32_t b[4];
      LoadKeys<T>(tile + t * T::kTileBytes, step, b);
      T::Mma(scores[2 * t], rest, b);
      T::Mma(scores[2 * t + 1], rest, b + 2);
    }
  }
}

// scores[n][e]: token 8n + 2 * (lane % 4) + e % 2 of row e / 2.
template <typename T, int kTiles>
SIMT_DEVICE void Multiply(const AttentionArgs& args, const WarpQuery<T>& query,
                          const std::byte* tile, float (*scores)[4]) {
  SIMT_UNROLL
  for (int n = 0; n < 2 * kTiles; ++n) {
    SIMT_UNROLL
    for (int e = 0; e < 4; ++e) scores[n][e] = 0.0f;
  }
  SIMT_UNROLL
  for (int step = 0; step < T::kSteps; ++step) {
    const Vec16 fragment = FragmentOf(query, step);
    SIMT_UNROLL
    for (int t = 0; t < kTiles; ++t) {
      uint32_t b[4];
      LoadKeys<T>(tile + t * T::kTileBytes, step, b);
      T::Mma(scores[2 * t], fragment.x, b);
      T::Mma(scores[2 * t + 1], fragment.x, b + 2);
    }
  }
  if (IsWide<T>(args)) MultiplyRest<T, kTiles>(args, query, tile, scores);
}

SIMT_DEVICE bool Sees(const KeySpan& span, int32_t keep_first, int32_t key) {
  return key < span.upper && (key >= span.lower || key < keep_first);
}

// Scales, softcap and ALiBi of one product.
SIMT_DEVICE float ScoreOf(const AttentionArgs& args, const ScoreRule& rule, const QueryRow& row,
                          float product, float k_scale, int key) {
  float score = product * rule.scale * k_scale;
  if (args.softcap > 0) score = args.softcap * Tanh(score / args.softcap);
  if (args.alibi_slopes == nullptr || row.q_row < 0) return score;
  return score + args.alibi_slopes[row.head] * static_cast<float>(key - args.positions[row.q_row]);
}

template <typename T, int kTiles>
SIMT_DEVICE void Transform(const AttentionArgs& args, const WarpQuery<T>& query,
                           const std::byte* tiles, int begin, float (*scores)[4]) {
  const ScoreRule rule = RuleOf(args, KvHead(args));
  SIMT_UNROLL
  for (int r = 0; r < 2; ++r) {
    const QueryRow row = RowOf(args, query, r);
    SIMT_UNROLL
    for (int i = 0; i < 4 * kTiles; ++i) {
      const int token = 8 * (i / 2) + 2 * (Lane() % 4) + i % 2;
      const float k_scale =
          HasTokenScales(args) ? ScalesOf<T>(tiles, i / 4)[token % kTileTokens] : 1.0f;
      float& score = scores[i / 2][2 * r + i % 2];
      score = ScoreOf(args, rule, row, score, k_scale, begin + token);
    }
  }
}

// Hidden keys become -inf, by selection.
template <typename T, int kTiles>
SIMT_DEVICE void Hide(const AttentionArgs& args, const WarpQuery<T>& query, int begin,
                      float (*scores)[4]) {
  const KeySpan* spans = query.spans;
  const int end = begin + kTiles * kTileTokens;
  if (begin >= spans[0].lower && begin >= spans[1].lower && end <= spans[0].upper &&
      end <= spans[1].upper) {
    return;
  }
  SIMT_UNROLL
  for (int n = 0; n < 2 * kTiles; ++n) {
    SIMT_UNROLL
    for (int e = 0; e < 4; ++e) {
      const int key = begin + 8 * n + 2 * (Lane() % 4) + e % 2;
      if (!Sees(spans[e / 2], args.keep_first, key)) scores[n][e] = kMinusInf;
    }
  }
}

template <typename T>
SIMT_DEVICE void Rescale(Accumulator<T>& acc, float factor0, float factor1) {
  if (factor0 == 1.0f && factor1 == 1.0f) return;
  SIMT_UNROLL
  for (int n = 0; n < T::kDim / 8; ++n) {
    acc.out[n][0] *= factor0;
    acc.out[n][1] *= factor0;
    acc.out[n][2] *= factor1;
    acc.out[n][3] *= factor1;
  }
}

// Scores become probabilities relative to the new maximum; sums and outputs follow.
template <typename T, int kTiles>
SIMT_DEVICE void Soften(float unit, float v_factor, Accumulator<T>& acc, float (*scores)[4]) {
  float factors[2];
  SIMT_UNROLL
  for (int r = 0; r < 2; ++r) {
    float largest = acc.max[r];
    SIMT_UNROLL
    for (int n = 0; n < 2 * kTiles; ++n) {
      largest = Max(largest, Max(scores[n][2 * r], scores[n][2 * r + 1]));
    }
    largest = QuadMax(largest);
    // Stands in for -inf inside exponents only.
    const float finite = largest == kMinusInf ? 0.0f : largest;
    factors[r] = Exp2((acc.max[r] - finite) * unit);
    acc.max[r] = largest;
    acc.sum[r] *= factors[r];
    SIMT_UNROLL
    for (int n = 0; n < 2 * kTiles; ++n) {
      SIMT_UNROLL
      for (int e = 2 * r; e < 2 * r + 2; ++e) {
        scores[n][e] = Exp2((scores[n][e] - finite) * unit);
        acc.sum[r] += scores[n][e];
      }
    }
  }
  Rescale(acc, factors[0] * v_factor, factors[1] * v_factor);
}

// Raises the unit of `out` to the largest V scale so far; returns what `out` shrinks by. Keeps
// probability times scale inside fp16 whatever the scales are.
template <typename T, int kTiles>
SIMT_DEVICE float RaiseUnit(const std::byte* tiles, Accumulator<T>& acc) {
  float largest = acc.v_unit;
  for (int t = 0; t < kTiles; ++t) {
    for (int i = 0; i < kTileTokens; ++i) {
      largest = Max(largest, ScalesOf<T>(tiles, t)[kTileTokens + i]);
    }
  }
  const float factor = largest > 0 ? acc.v_unit / largest : 1.0f;
  acc.v_unit = largest;
  return factor;
}

template <typename T>
SIMT_DEVICE void Accumulate(const std::byte* tile, const float (*weights)[4], const float* v_scales,
                            Accumulator<T>& acc) {
  uint32_t a[4];
  SIMT_UNROLL
  for (int i = 0; i < 4; ++i) {
    const float* pair = weights[i / 2] + i % 2 * 2;
    float low = pair[0];
    float high = pair[1];
    if (v_scales != nullptr) {
      const float unit = acc.v_unit > 0 ? acc.v_unit : 1.0f;
      const int token = 8 * (i / 2) + 2 * (Lane() % 4);
      low *= v_scales[token] / unit;
      high *= v_scales[token + 1] / unit;
    }
    a[i] = T::Pack(low, high);
  }
  SIMT_UNROLL
  for (int step = 0; step < T::kSteps; ++step) {
    uint32_t b[4];
    LoadValues<T>(tile, step, b);
    T::Mma(acc.out[2 * step], a, b);
    T::Mma(acc.out[2 * step + 1], a, b + 2);
  }
}

// `tiles` lie one after another; the first key is `begin`.
template <typename T, int kTiles>
SIMT_DEVICE void AttendTiles(const AttentionArgs& args, const WarpQuery<T>& query,
                             const std::byte* tiles, int begin, Accumulator<T>& acc) {
  float scores[2 * kTiles][4];
  Multiply<T, kTiles>(args, query, tiles, scores);
  if (!query.plain) Transform<T, kTiles>(args, query, tiles, begin, scores);
  Hide<T, kTiles>(args, query, begin, scores);
  const float v_factor = HasTokenScales(args) ? RaiseUnit<T, kTiles>(tiles, acc) : 1.0f;
  Soften<T, kTiles>(query.unit, v_factor, acc, scores);
  SIMT_UNROLL
  for (int t = 0; t < kTiles; ++t) {
    const float* v_scales = HasTokenScales(args) ? ScalesOf<T>(tiles, t) + kTileTokens : nullptr;
    Accumulate<T>(tiles + t * T::kTileBytes, scores + 2 * t, v_scales, acc);
  }
}

}  // namespace quire::kernels::QUIRE_SIMT

#endif  // QUIRE_KERNELS_CUDA_ATTEND_CUH_
