// Softmax of one tile of one KV head: which rows see which of its keys, and by what rule.
#if defined(QUIRE_KERNELS_CPU_HEAD_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIRE_KERNELS_CPU_HEAD_TILE_INL_H_
#undef QUIRE_KERNELS_CPU_HEAD_TILE_INL_H_
#else
#define QUIRE_KERNELS_CPU_HEAD_TILE_INL_H_
#endif

#include <algorithm>

#include "kernels/cpu/attention.h"
#include "kernels/cpu/softmax-inl.h"
#include "kernels/cpu/task-inl.h"
#include "kernels/cpu/tile.h"

QUIRE_BEFORE_NAMESPACE();

namespace quire::kernels::cpu {
namespace HWY_NAMESPACE {

// One tile of one KV head.
struct HeadTile {
  int32_t kv_head;
  HeadState state;
  TileRows rows;
  KvTile view;
  int64_t begin;  // position of the first key
  LogitRule rule;
};

// Every row sees every key, which fill whole vectors and quads, and logits are only scaled.
inline bool IsOpen(const Task& task, const HeadTile& tile) {
  const AttentionParams& p = task.call.params;
  const RowBounds& all = task.scratch.common_bounds;
  const int tokens = tile.rows.tokens;
  return p.alibi_slopes == nullptr && p.softcap == 0 &&
         task.call.pool.layout.scale_kind != ScaleKind::kPerToken && tile.begin >= all.begin &&
         tile.begin + tokens <= all.end &&
         static_cast<size_t>(tokens) % std::max(kLanes, kQuad) == 0;
}

template <int kRows>
BlockState<kRows> BlockOf(const Task& task, const HeadState& s, int64_t row) {
  const int64_t begin = row / kRows * kRows;
  return {s.max + begin * kSumLanes, s.sums + begin * kSumLanes,
          s.out + static_cast<size_t>(begin) * task.head_dim, task.head_dim};
}

template <typename A, int kRows>
void SoftmaxRow(const Task& task, const HeadTile& tile, int64_t row) {
  const AttentionParams& p = task.call.params;
  const bool per_token = task.call.pool.layout.scale_kind == ScaleKind::kPerToken;
  LogitRule rule = tile.rule;
  rule.k_scale = per_token ? tile.rows.k_scale : nullptr;
  if (p.alibi_slopes != nullptr) {
    rule.slope = p.alibi_slopes[task.HeadOf(tile.kv_head, row)];
    rule.distance = static_cast<float>(tile.begin - task.call.positions[task.TokenOf(row)]);
  }
  const RowBounds& bounds = task.scratch.bounds[static_cast<size_t>(row)];
  const TileMask mask = MaskOf(bounds, p.mask.keep_first, tile.begin, tile.rows.tokens);
  const int64_t at = row / kRows * kRows * kPlanTileTokens;
  UpdateRow<A, kRows>(task.scratch.scores + at, task.scratch.weights + at,
                      static_cast<size_t>(row % kRows), static_cast<size_t>(tile.rows.tokens), rule,
                      mask, per_token ? tile.rows.v_scale : nullptr,
                      BlockOf<kRows>(task, tile.state, row));
}

template <typename A, int kRows>
void Softmax(const Task& task, const HeadTile& tile) {
  if (!IsOpen(task, tile)) {
    for (int64_t r = 0; r < task.rows; ++r) SoftmaxRow<A, kRows>(task, tile, r);
    return;
  }
  for (int64_t r = 0; r < task.rows; r += kRows) {
    UpdateOpenBlock<A, kRows>(task.scratch.scores + r * kPlanTileTokens,
                              task.scratch.weights + r * kPlanTileTokens,
                              static_cast<size_t>(tile.rows.tokens), tile.rule.scale,
                              BlockOf<kRows>(task, tile.state, r));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace quire::kernels::cpu

HWY_AFTER_NAMESPACE();

#endif  // include guard
