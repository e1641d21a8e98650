// Attend for one stored type: queries in, all keys in steps, outputs or partial states out.
#if defined(QUIRE_KERNELS_CPU_ATTEND_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIRE_KERNELS_CPU_ATTEND_INL_H_
#undef QUIRE_KERNELS_CPU_ATTEND_INL_H_
#else
#define QUIRE_KERNELS_CPU_ATTEND_INL_H_
#endif

#include <algorithm>
#include <type_traits>

#include "kernels/cpu/codes-inl.h"
#include "kernels/cpu/heads-inl.h"
#include "kernels/cpu/pairs-inl.h"
#include "kernels/cpu/tile_work-inl.h"

QUIRE_BEFORE_NAMESPACE();

namespace quire::kernels::cpu {
namespace HWY_NAMESPACE {

// Keys of a step. For few rows a block if it can be, since that is a run of addresses.
inline int64_t StepTokens(const Task& task) {
  if (task.rows > 8) return kPlanTileTokens;
  return std::clamp<int64_t>(task.call.pool.layout.block_tokens(), 16, kPlanTileTokens);
}

// Step after step, and in each, head after head: blocks are read in address order.
// Returns the rows that were worked on together.
template <DType kType, typename Work>
int WalkKeys(const Task& task) {
  const int64_t table_row = task.shared() ? 0 : task.item.sequence;
  const TileWalker walker(task.call.pool,
                          task.call.table.ids + table_row * task.call.table.row_stride,
                          task.call.params.layer);
  const int64_t step = StepTokens(task);
  const int64_t end = task.item.kv_end;
  PrefetchCursor& ahead = task.scratch.ahead;
  const auto list = [&](int64_t from) {
    walker.ListAhead(task.head_begin, task.heads, from, std::min(end, from + step), &ahead);
  };
  ahead.Clear();
  list(task.item.kv_begin);
  ahead.Advance(PrefetchCursor::kDistance);
  HeadTile tile;
  for (int64_t begin = task.item.kv_begin; begin < end; begin += step) {
    const int64_t next = std::min(end, begin + step);
    if (next < end) list(next);
    for (int32_t h = 0; h < task.heads; ++h) {
      tile.kv_head = task.head_begin + h;
      tile.state = task.scratch.Head(h);
      walker.Find(tile.kv_head, begin, next, &tile.rows);
      tile.view = {tile.rows.k, tile.rows.v, tile.rows.tokens, task.call.pool.layout.row_bytes(),
                   &ahead};
      tile.begin = begin;
      tile.rule = RuleOf<kType>(task, tile.kv_head);
      Work::Scores(task, tile);
      Softmax<typename Work::Arithmetic, Work::kRows>(task, tile);
      Work::Sums(task, tile);
    }
  }
  return Work::kRows;
}

#if QUIRE_BF16_PAIRS
template <DType kType, int kTerms>
int WalkPairs(const Task& task) {
  using A = std::conditional_t<kType == DType::kBF16, Pairs<kTerms>, Codes<kType, kTerms>>;
  if (task.rows == 1) return WalkKeys<kType, RowWork<A, 1>>(task);
  return WalkKeys<kType, RowWork<A, 4>>(task);
}
#endif

template <DType kType>
int Walk(const Task& task) {
#if QUIRE_BF16_PAIRS
  if constexpr (kFitsPairs<kType>) {
    if (UsesPairs<kType>(task)) {
      const DType q = task.call.params.q_dtype;
      if (q == DType::kBF16) return WalkPairs<kType, 1>(task);
      if (q == DType::kF16) return WalkPairs<kType, 2>(task);
      return WalkPairs<kType, 3>(task);
    }
  }
#endif
  if (task.rows >= ManyRows(kType)) return WalkKeys<kType, MatrixWork<kType>>(task);
  if (task.rows == 1) return WalkKeys<kType, RowWork<Floats<kType>, 1>>(task);
  if (task.rows == 2 || kAccumulators < 16) return WalkKeys<kType, RowWork<Floats<kType>, 2>>(task);
  return WalkKeys<kType, RowWork<Floats<kType>, kAccumulators / 4>>(task);
}

template <DType kType>
void AttendStored(const AttentionCall& call, const AttentionTask& work, AttentionScratch& scratch) {
  const int64_t group = call.group();
  const Task task{call,
                  *work.item,
                  work.head_begin,
                  work.heads,
                  scratch,
                  group,
                  group * work.item->q_tokens,
                  static_cast<size_t>(call.pool.layout.head_dim)};
  FindBounds(task);
  for (int32_t h = 0; h < task.heads; ++h) {
    BeginHead<kType>(task, task.head_begin + h, task.scratch.Head(h));
  }
  const int block = Walk<kType>(task);
  for (int32_t h = 0; h < task.heads; ++h) {
    EndHead<kType>(task, task.head_begin + h, task.scratch.Head(h), block);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace quire::kernels::cpu

HWY_AFTER_NAMESPACE();

#endif  // include guard
