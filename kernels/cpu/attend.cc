// Attend: one plan item on some KV heads, compiled once per Highway target and storage type.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attend.cc"
#include "hwy/foreach_target.h"
// After foreach_target:
#include "hwy/highway.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/gemm-inl.h"
#include "kernels/cpu/row_io-inl.h"
#include "kernels/cpu/rows-inl.h"
#include "kernels/cpu/simd-inl.h"
#include "kernels/cpu/softmax-inl.h"

HWY_BEFORE_NAMESPACE();

namespace quire::kernels::cpu {
namespace HWY_NAMESPACE {
namespace {

// One Attend call.
struct Task {
  const AttentionCall& call;
  const PlanItem& item;
  int32_t head_begin;
  int32_t heads;
  AttentionScratch& scratch;
  int64_t group;
  int64_t rows;  // on one KV head
  size_t head_dim;

  // All queries see all of a shared prefix.
  bool shared() const { return item.sequence == call.plan.sequences; }

  int64_t padded_rows() const { return (rows + kRowPad - 1) / kRowPad * kRowPad; }

  int64_t TokenOf(int64_t row) const { return item.q_row + row / group; }

  int64_t HeadOf(int32_t kv_head, int64_t row) const { return kv_head * group + row % group; }
};

RowBounds BoundsOf(const Task& task, int64_t row) {
  if (task.shared()) return {0, task.item.kv_end};
  const AttentionMask& mask = task.call.params.mask;
  const int64_t position = task.call.positions[task.TokenOf(row)];
  const int64_t end = mask.causal ? std::min(task.item.kv_end, position + 1) : task.item.kv_end;
  return {mask.window_left < 0 ? 0 : position - mask.window_left, end};
}

template <DType kType>
bool UsesEvenOdd(const Task& task) {
  return Stored<kType>::kEvenOdd && task.rows < ManyRows(kType);
}

template <DType kType>
void BeginHead(const Task& task, int32_t kv_head, const HeadState& s) {
  const int64_t padded = task.padded_rows();
  std::fill(s.out, s.out + static_cast<size_t>(padded) * task.head_dim, 0.0f);
  std::fill(s.max, s.max + padded, kMinusInf);
  std::fill(s.sum, s.sum + padded, 0.0f);
  std::fill(s.decay, s.decay + padded, 1.0f);
  const AttentionParams& p = task.call.params;
  for (int64_t r = 0; r < task.rows; ++r) {
    float* q = s.q + static_cast<size_t>(r) * task.head_dim;
    const int64_t head = task.HeadOf(kv_head, r);
    LoadQuery(p, task.TokenOf(r) * p.q_row_stride + head * p.q_head_stride, task.head_dim, q);
    if (UsesEvenOdd<kType>(task)) SplitEvenOdd(q, task.head_dim);
  }
  std::fill(s.q + static_cast<size_t>(task.rows) * task.head_dim,
            s.q + static_cast<size_t>(padded) * task.head_dim, 0.0f);
}

template <DType kType>
LogitRule RuleOf(const Task& task, int32_t kv_head) {
  const AttentionParams& p = task.call.params;
  LogitRule rule;
  rule.scale = p.scale / Stored<kType>::kUnit;
  const ScaleKind kind = task.call.pool.layout.scale_kind;
  if (kind == ScaleKind::kPerTensor) rule.scale *= p.k_scale[0];
  if (kind == ScaleKind::kPerHead) rule.scale *= p.k_scale[kv_head];
  rule.softcap = p.softcap;
  return rule;
}

TileMask MaskOf(const RowBounds& bounds, int64_t keep, int64_t begin, int tokens) {
  const auto local = [&](int64_t position) {
    return static_cast<float>(std::clamp<int64_t>(position - begin, 0, tokens));
  };
  TileMask mask;
  mask.first = local(bounds.begin);
  mask.last = local(bounds.end);
  mask.keep = local(std::min(keep, bounds.end));
  const bool whole = static_cast<size_t>(tokens) % kLanes == 0;
  mask.open = whole && mask.first == 0 && mask.last == static_cast<float>(tokens);
  return mask;
}

// One tile of one KV head.
struct HeadTile {
  int32_t kv_head;
  HeadState state;
  const TileRows& rows;
  KvTile view;
  int64_t begin;  // position of the first key
};

void Softmax(const Task& task, const HeadTile& tile, LogitRule rule) {
  const HeadState& s = tile.state;
  const AttentionParams& p = task.call.params;
  const bool per_token = task.call.pool.layout.scale_kind == ScaleKind::kPerToken;
  rule.k_scale = per_token ? tile.rows.k_scale : nullptr;
  const int tokens = tile.rows.tokens;
  for (int64_t r = 0; r < task.rows; ++r) {
    if (p.alibi_slopes != nullptr) {
      rule.slope = p.alibi_slopes[task.HeadOf(tile.kv_head, r)];
      rule.distance = static_cast<float>(tile.begin - task.call.positions[task.TokenOf(r)]);
    }
    const RowBounds& bounds = task.scratch.bounds[static_cast<size_t>(r)];
    const TileMask mask = MaskOf(bounds, p.mask.keep_first, tile.begin, tokens);
    UpdateRow(task.scratch.scores + r * kPlanTileTokens, static_cast<size_t>(tokens), rule, mask,
              per_token ? tile.rows.v_scale : nullptr, s.max + r, s.sum + r, s.decay + r);
  }
}

template <DType kType, int kRows>
void WalkFewRows(const Task& task, const HeadTile& tile) {
  const HeadState& s = tile.state;
  float* scores = task.scratch.scores;
  DotRows<kType, kRows>(tile.view, s.q, task.rows, task.head_dim, scores);
  Softmax(task, tile, RuleOf<kType>(task, tile.kv_head));
  SumRows<kType, kRows>(tile.view, scores, s.decay, task.rows, task.head_dim, s.out);
}

template <DType kType>
void WalkManyRows(const Task& task, const HeadTile& tile) {
  const HeadState& s = tile.state;
  const AttentionScratch& scratch = task.scratch;
  LoadTile<kType>(tile.view, task.head_dim, scratch.k_tile, scratch.v_tile);
  MultiplyAll({s.q, task.head_dim, scratch.k_tile, kPlanTileTokens, task.head_dim, scratch.scores,
               kPlanTileTokens, nullptr},
              task.padded_rows(), kPlanTileTokens);
  Softmax(task, tile, RuleOf<kType>(task, tile.kv_head));
  MultiplyAll({scratch.scores, kPlanTileTokens, scratch.v_tile, task.head_dim,
               static_cast<size_t>(tile.view.tokens), s.out, task.head_dim, s.decay},
              task.padded_rows(), task.head_dim);
}

template <DType kType>
void WalkTile(const Task& task, const HeadTile& tile) {
  if (task.rows >= ManyRows(kType)) return WalkManyRows<kType>(task, tile);
  if (task.rows == 1) return WalkFewRows<kType, 1>(task, tile);
  if (task.rows == 2 || kAccumulators < 16) return WalkFewRows<kType, 2>(task, tile);
  return WalkFewRows<kType, kAccumulators / 4>(task, tile);
}

// Keys of a step. A single query row over two-byte elements or wider is bound by memory: there a
// step of one block reads addresses in order, which hardware prefetchers follow. Else arithmetic is
// the limit, and long steps have less of it.
int64_t StepTokens(const Task& task) {
  const PagedKvLayout& layout = task.call.pool.layout;
  if (task.rows > 1 || ElementBytes(layout.dtype) == 1) return kPlanTileTokens;
  return std::clamp<int64_t>(layout.block_tokens(), 16, kPlanTileTokens);
}

// Step after step, and in each, head after head: blocks are read in address order.
template <DType kType>
void WalkKeys(const Task& task) {
  const int64_t table_row = task.shared() ? 0 : task.item.sequence;
  const TileWalker walker(task.call.pool,
                          task.call.table.ids + table_row * task.call.table.row_stride,
                          task.call.params.layer);
  const int64_t step = StepTokens(task);
  const int64_t end = task.item.kv_end;
  TileRows rows;
  for (int64_t begin = task.item.kv_begin; begin < end; begin += step) {
    const int64_t next = std::min(end, begin + step);
    walker.ListAhead(task.head_begin, task.heads, next, std::min(end, next + step),
                     &task.scratch.ahead);
    for (int32_t h = 0; h < task.heads; ++h) {
      walker.Find(task.head_begin + h, begin, next, &rows);
      const KvTile view{rows.k, rows.v, rows.tokens, task.call.pool.layout.row_bytes(),
                        &task.scratch.ahead};
      WalkTile<kType>(task, {task.head_begin + h, task.scratch.Head(h), rows, view, begin});
    }
  }
}

// A finished row: what to multiply the sums by, and the LSE.
struct RowResult {
  float factor = 0.0f;
  float lse = kMinusInf;
};

RowResult Finish(float max, float sum, const float* sink) {
  const float top = sink != nullptr ? std::max(max, *sink) : max;
  if (top == kMinusInf) return {};
  const float factor = sum > 0 ? std::exp(max - top) : 0.0f;
  float total = sum * factor;
  if (sink != nullptr) total += std::exp(*sink - top);
  return {factor / total, top + std::log(total)};
}

void StoreRow(const Task& task, int64_t row, int64_t head, const float* out, float unit,
              const HeadState& s) {
  const AttentionParams& p = task.call.params;
  if (task.item.partial_row >= 0) {
    const RowResult result = Finish(s.max[row], s.sum[row], nullptr);
    const int64_t cell = (task.item.partial_row + row / task.group) * p.q_heads + head;
    StoreOut(DType::kF32, task.call.partial_out, cell * static_cast<int64_t>(task.head_dim), out,
             task.head_dim, unit * result.factor);
    task.call.partial_lse[cell] = result.lse;
    return;
  }
  const float* sink = p.sinks != nullptr ? p.sinks + head : nullptr;
  const RowResult result = Finish(s.max[row], s.sum[row], sink);
  const int64_t token = task.TokenOf(row);
  StoreOut(p.out_dtype, p.out, token * p.out_row_stride + head * p.out_head_stride, out,
           task.head_dim, unit * result.factor);
  if (p.lse != nullptr) p.lse[token * p.lse_row_stride + head * p.lse_head_stride] = result.lse;
}

// Divides by the sum and stores: to the workspace, or to the output with the sink joined.
template <DType kType>
void EndHead(const Task& task, int32_t kv_head, const HeadState& s) {
  const AttentionParams& p = task.call.params;
  const ScaleKind kind = task.call.pool.layout.scale_kind;
  float unit = 1.0f / Stored<kType>::kUnit;
  if (kind == ScaleKind::kPerTensor) unit *= p.v_scale[0];
  if (kind == ScaleKind::kPerHead) unit *= p.v_scale[kv_head];
  for (int64_t r = 0; r < task.rows; ++r) {
    float* out = s.out + static_cast<size_t>(r) * task.head_dim;
    if (UsesEvenOdd<kType>(task)) JoinEvenOdd(out, task.head_dim);
    StoreRow(task, r, task.HeadOf(kv_head, r), out, unit, s);
  }
}

template <DType kType>
void AttendTyped(const Task& task) {
  task.scratch.bounds.clear();
  for (int64_t r = 0; r < task.rows; ++r) task.scratch.bounds.push_back(BoundsOf(task, r));
  for (int32_t h = 0; h < task.heads; ++h) {
    BeginHead<kType>(task, task.head_begin + h, task.scratch.Head(h));
  }
  WalkKeys<kType>(task);
  for (int32_t h = 0; h < task.heads; ++h) {
    EndHead<kType>(task, task.head_begin + h, task.scratch.Head(h));
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
}  // namespace

void Attend(const AttentionCall& call, const AttentionTask& task, AttentionScratch& scratch) {
  HWY_DYNAMIC_DISPATCH(AttendForTarget)(call, task, scratch);
}

}  // namespace quire::kernels::cpu
#endif  // HWY_ONCE
