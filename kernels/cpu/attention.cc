#include "kernels/cpu/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>

#include "kernels/dtype.h"

namespace quire::kernels::cpu {
namespace {

constexpr std::align_val_t kAlign{64};
constexpr int64_t kTaskTileBytes = int64_t{256} << 10;
constexpr float kEmpty = -std::numeric_limits<float>::infinity();

float ReadLse(float lse) { return std::isinf(lse) ? kEmpty : lse; }

float LargestLogit(const MergeCell& cell) {
  float top = cell.sink != nullptr ? *cell.sink : kEmpty;
  for (int64_t s = 0; s < cell.states; ++s) top = std::max(top, ReadLse(cell.lses[s]));
  return top;
}

}  // namespace

void AttentionScratch::Free::operator()(float* p) const { ::operator delete(p, kAlign); }

void AttentionScratch::Reserve(const Sizes& sizes) {
  rows_ = (sizes.rows + kRowPad - 1) / kRowPad * kRowPad;
  head_dim_ = sizes.head_dim;
  const int64_t tile = kPlanTileTokens * head_dim_;
  const int64_t needed = sizes.heads * HeadFloats() + 2 * rows_ * kPlanTileTokens + 2 * tile;
  if (needed > floats_) {
    memory_.reset(
        static_cast<float*>(::operator new(static_cast<size_t>(needed) * sizeof(float), kAlign)));
    floats_ = needed;
  }
  bounds.reserve(static_cast<size_t>(rows_));
  const int64_t blocks = kPlanTileTokens / sizes.block_tokens + 2;
  ahead.Reserve(static_cast<size_t>(2 * 2 * sizes.heads * blocks));  // of two steps
  merge_outs.resize(static_cast<size_t>(sizes.merge_states));
  merge_lses.resize(static_cast<size_t>(sizes.merge_states));
  k_tile = memory_.get();
  v_tile = k_tile + tile;
  scores = v_tile + tile;
  weights = scores + rows_ * kPlanTileTokens;
  heads_ = weights + rows_ * kPlanTileTokens;
}

int64_t AttentionScratch::HeadFloats() const {
  return ((kQueryWidth + 1) * head_dim_ + 2 * kSumLanes) * rows_;
}

HeadState AttentionScratch::Head(int64_t index) const {
  HeadState head;
  head.q = heads_ + index * HeadFloats();
  head.out = head.q + kQueryWidth * rows_ * head_dim_;
  head.max = head.out + rows_ * head_dim_;
  head.sums = head.max + kSumLanes * rows_;
  return head;
}

std::vector<AttentionTask> MakeTasks(const AttentionCall& call, int threads) {
  const int64_t kv_heads = call.pool.layout.kv_heads;
  const auto items = static_cast<int64_t>(call.plan.items.size());
  const int64_t tile_bytes = int64_t{2} * kPlanTileTokens * call.pool.layout.row_bytes();
  // Two tiles of all heads of a task, this one and the next, stay in the second-level cache.
  int64_t most = std::max<int64_t>(1, kTaskTileBytes / tile_bytes);
  if (items < int64_t{2} * threads)
    most = std::min(most, std::max<int64_t>(1, items * kv_heads / threads));
  most = std::min(most, kv_heads);
  const int64_t many = ManyRows(call.pool.layout.dtype);
  std::vector<AttentionTask> tasks;
  for (const PlanItem& item : call.plan.items) {
    const int64_t step = int64_t{item.q_tokens} * call.group() >= many ? 1 : most;
    for (int64_t head = 0; head < kv_heads; head += step) {
      tasks.push_back({&item, static_cast<int32_t>(head),
                       static_cast<int32_t>(std::min(step, kv_heads - head))});
    }
  }
  return tasks;
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
