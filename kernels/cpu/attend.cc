// Attend: one plan item on some KV heads, compiled once per Highway target and storage type.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attend.cc"
#include <type_traits>

#include "hwy/foreach_target.h"
// After foreach_target:
#include "hwy/highway.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/codes-inl.h"
#include "kernels/cpu/floats-inl.h"
#include "kernels/cpu/gemm-inl.h"
#include "kernels/cpu/heads-inl.h"
#include "kernels/cpu/pairs-inl.h"
#include "kernels/cpu/rows-inl.h"
#include "kernels/cpu/simd-inl.h"
#include "kernels/cpu/softmax-inl.h"
#include "kernels/cpu/task-inl.h"

QUIRE_BEFORE_NAMESPACE();

namespace quire::kernels::cpu {
namespace HWY_NAMESPACE {
namespace {

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
bool IsOpen(const Task& task, const HeadTile& tile) {
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

// What is done to a tile: Scores, Softmax, Sums. Few rows: as they are stored.
template <typename A, int kBlockRows>
struct RowWork {
  using Arithmetic = A;
  static constexpr int kRows = kBlockRows;

  static void Scores(const Task& task, HeadTile& tile) {
    const auto rows = static_cast<size_t>(task.padded_rows());
    DotRows<A, kRows>(tile.view, {tile.state.q, rows, task.head_dim}, task.rows,
                      task.scratch.scores);
  }

  static void Sums(const Task& task, const HeadTile& tile) {
    SumRows<A, kRows>(tile.view, task.scratch.weights, task.rows, task.head_dim, tile.state.out);
  }
};

// As matrices, fp32.
template <DType kType>
struct MatrixWork {
  using Arithmetic = Floats<kType>;
  static constexpr int kRows = 1;

  static void Scores(const Task& task, HeadTile& tile) {
    const AttentionScratch& scratch = task.scratch;
    LoadTile<kType>(tile.view, task.head_dim, scratch.k_tile, scratch.v_tile);
    MultiplyAll({tile.state.q, task.head_dim, scratch.k_tile, kPlanTileTokens, task.head_dim,
                 task.scratch.scores, kPlanTileTokens, false},
                task.padded_rows(), kPlanTileTokens);
  }

  static void Sums(const Task& task, const HeadTile& tile) {
    MultiplyAll({task.scratch.weights, kPlanTileTokens, task.scratch.v_tile, task.head_dim,
                 static_cast<size_t>(tile.view.tokens), tile.state.out, task.head_dim, true},
                task.padded_rows(), task.head_dim);
  }
};

// Keys of a step. For few rows a block if it can be, since that is a run of addresses.
int64_t StepTokens(const Task& task) {
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
void AttendTyped(const Task& task) {
  FindBounds(task);
  for (int32_t h = 0; h < task.heads; ++h) {
    BeginHead<kType>(task, task.head_begin + h, task.scratch.Head(h));
  }
  const int block = Walk<kType>(task);
  for (int32_t h = 0; h < task.heads; ++h) {
    EndHead<kType>(task, task.head_begin + h, task.scratch.Head(h), block);
  }
}

void AttendForTarget(const AttentionCall& call, const AttentionTask& work,
                     AttentionScratch& scratch) {
  const int64_t group = call.group();
  const Task task{call,
                  *work.item,
                  work.head_begin,
                  work.heads,
                  scratch,
                  group,
                  group * work.item->q_tokens,
                  static_cast<size_t>(call.pool.layout.head_dim)};
  switch (call.pool.layout.dtype) {
    case DType::kF32:
      return AttendTyped<DType::kF32>(task);
    case DType::kF16:
      return AttendTyped<DType::kF16>(task);
    case DType::kBF16:
      return AttendTyped<DType::kBF16>(task);
    case DType::kE4M3:
      return AttendTyped<DType::kE4M3>(task);
    case DType::kI8:
      return AttendTyped<DType::kI8>(task);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace quire::kernels::cpu

HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quire::kernels::cpu {
namespace {
HWY_EXPORT(AttendForTarget);

#if HWY_TARGETS & HWY_AVX3_DL
// Highway does not ask for AVX512_BF16 before it chooses its best target. Before any dispatch.
const bool best_target_limited = [] {
  const bool usable = __builtin_cpu_supports("avx512bf16");
  if (!usable) hwy::DisableTargets(HWY_AVX3_DL);
  return !usable;
}();
#endif
}  // namespace

void Attend(const AttentionCall& call, const AttentionTask& task, AttentionScratch& scratch) {
  HWY_DYNAMIC_DISPATCH(AttendForTarget)(call, task, scratch);
}

}  // namespace quire::kernels::cpu
#endif  // HWY_ONCE
