#include "kernels/cpu/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>

#include "kernels/dtype.h"

namespace quire::kernels::cpu {
namespace {

constexpr std::align_val_t kAlign{64};
constexpr float kEmpty = -std::numeric_limits<float>::infinity();

int64_t RoundUp16(int64_t floats) { return (floats + 15) / 16 * 16; }

float ReadLse(float lse) { return std::isinf(lse) ? kEmpty : lse; }

float LargestLogit(const MergeCell& cell) {
  float top = cell.sink != nullptr ? *cell.sink : kEmpty;
  for (int64_t s = 0; s < cell.states; ++s) top = std::max(top, ReadLse(cell.lses[s]));
  return top;
}

}  // namespace

void AttentionScratch::Free::operator()(float* p) const { ::operator delete(p, kAlign); }

void AttentionScratch::Reserve(int64_t rows, int64_t head_dim, int64_t merge_states) {
  rows = (rows + kRowPad - 1) / kRowPad * kRowPad;
  const int64_t tile = kPlanTileTokens * head_dim;
  const int64_t row_floats = 2 * head_dim + kPlanTileTokens;
  const int64_t needed = rows * row_floats + 3 * RoundUp16(rows) + 2 * tile;
  if (needed > floats_) {
    memory_.reset(
        static_cast<float*>(::operator new(static_cast<size_t>(needed) * sizeof(float), kAlign)));
    floats_ = needed;
  }
  bounds.reserve(static_cast<size_t>(rows));
  merge_outs.resize(static_cast<size_t>(merge_states));
  merge_lses.resize(static_cast<size_t>(merge_states));
  float* next = memory_.get();
  const auto take = [&next](int64_t floats) {
    float* at = next;
    next += floats;
    return at;
  };
  q = take(rows * head_dim);
  out = take(rows * head_dim);
  scores = take(rows * kPlanTileTokens);
  max = take(RoundUp16(rows));
  sum = take(RoundUp16(rows));
  decay = take(RoundUp16(rows));
  k_tile = take(tile);
  v_tile = take(tile);
}

void Merge(const MergeCell& cell) {
  constexpr size_t kMaxLocal = 256;
  const float top = LargestLogit(cell);
  float sum = top != kEmpty && cell.sink != nullptr ? std::exp(*cell.sink - top) : 0.0f;
  for (int64_t s = 0; s < cell.states; ++s) {
    if (ReadLse(cell.lses[s]) != kEmpty) sum += std::exp(cell.lses[s] - top);
  }
  const auto dim = static_cast<size_t>(cell.head_dim);
  for (size_t at = 0; at < dim; at += kMaxLocal) {
    const size_t count = std::min(kMaxLocal, dim - at);
    float out[kMaxLocal] = {};
    for (int64_t s = 0; s < cell.states; ++s) {
      if (ReadLse(cell.lses[s]) == kEmpty) continue;
      const float weight = std::exp(cell.lses[s] - top) / sum;
      const float* from = cell.outs[s] + at;
      for (size_t i = 0; i < count; ++i) out[i] += weight * from[i];
    }
    for (size_t i = 0; i < count; ++i) {
      StoreElement(cell.out_dtype, cell.out, static_cast<int64_t>(at + i), out[i]);
    }
  }
  if (cell.lse != nullptr) *cell.lse = sum > 0 ? top + std::log(sum) : kEmpty;
}

void MergePlanned(const AttentionCall& call, int64_t index, AttentionScratch& scratch) {
  const AttentionParams& p = call.params;
  const PlanMerge& merge = call.plan.merges[static_cast<size_t>(index)];
  const auto states = static_cast<size_t>(merge.last_part - merge.first_part);
  const int64_t d = call.pool.layout.head_dim;
  for (int64_t token = 0; token < merge.q_tokens; ++token) {
    for (int64_t head = 0; head < p.q_heads; ++head) {
      for (size_t s = 0; s < states; ++s) {
        const size_t part = static_cast<size_t>(merge.first_part) + s;
        const int64_t cell = (call.plan.merge_rows[part] + token) * p.q_heads + head;
        scratch.merge_outs[s] = call.partial_out + cell * d;
        scratch.merge_lses[s] = call.partial_lse[cell];
      }
      const int64_t row = merge.q_row + token;
      MergeCell cell;
      cell.outs = scratch.merge_outs.data();
      cell.lses = scratch.merge_lses.data();
      cell.states = static_cast<int64_t>(states);
      cell.head_dim = d;
      cell.sink = p.sinks != nullptr ? p.sinks + head : nullptr;
      cell.out = static_cast<std::byte*>(p.out) +
                 (row * p.out_row_stride + head * p.out_head_stride) * ElementBytes(p.out_dtype);
      cell.out_dtype = p.out_dtype;
      cell.lse =
          p.lse != nullptr ? p.lse + row * p.lse_row_stride + head * p.lse_head_stride : nullptr;
      Merge(cell);
    }
  }
}

}  // namespace quire::kernels::cpu
