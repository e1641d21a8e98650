#include "tests/kernels/bench/first_version.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/dtype.h"

namespace quire::kernels::bench {
namespace {

void LoadRow(const KvPoolView& pool, int64_t at, float* row) {
  for (int64_t i = 0; i < pool.layout.head_dim; ++i) {
    row[i] = LoadElement(pool.layout.dtype, pool.base, at + i);
  }
}

struct State {
  float max = -std::numeric_limits<float>::infinity();
  float sum = 0;
  std::vector<float> out;
};

void AddKey(const float* q, const float* k, const float* v, float scale, State* state) {
  const size_t dim = state->out.size();
  float score = 0;
  for (size_t i = 0; i < dim; ++i) score += q[i] * k[i];
  score *= scale;
  const float max = std::max(state->max, score);
  const float decay = std::exp(state->max - max);
  const float weight = std::exp(score - max);
  state->max = max;
  state->sum = state->sum * decay + weight;
  for (size_t i = 0; i < dim; ++i) state->out[i] = state->out[i] * decay + weight * v[i];
}

}  // namespace

void FirstVersionAttention(const KvPoolView& pool, const BlockTableView& table,
                           const AttentionParams& p) {
  const PagedKvLayout& layout = pool.layout;
  const auto dim = static_cast<size_t>(layout.head_dim);
  const int64_t group = p.q_heads / layout.kv_heads;
  std::vector<float> k(dim), v(dim);
  for (int64_t s = 0; s < table.rows; ++s) {
    const int64_t begin = p.cu_q_lens[s];
    const int64_t rows = p.cu_q_lens[s + 1] - begin;
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t head = 0; head < p.q_heads; ++head) {
        const float* q = static_cast<const float*>(p.q) + (begin + row) * p.q_row_stride +
                         head * p.q_head_stride;
        State state;
        state.out.assign(dim, 0.0f);
        for (int64_t t = 0; t <= table.lens[s] - rows + row; ++t) {
          const int64_t block = table.ids[s * table.row_stride + t / layout.block_tokens()];
          const int64_t slot = t % layout.block_tokens();
          LoadRow(pool, layout.RowOffset(block, p.layer, head / group, false, slot), k.data());
          LoadRow(pool, layout.RowOffset(block, p.layer, head / group, true, slot), v.data());
          AddKey(q, k.data(), v.data(), p.scale, &state);
        }
        float* out = static_cast<float*>(p.out) + (begin + row) * p.out_row_stride +
                     head * p.out_head_stride;
        for (size_t i = 0; i < dim; ++i) out[i] = state.out[i] / state.sum;
      }
    }
  }
}

}  // namespace quire::kernels::bench
