// AttendHead: one plan item on one KV head, compiled once per Highway target and storage type.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attend.cc"
#include "hwy/foreach_target.h"
// After foreach_target:
#include "hwy/highway.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/gemm-inl.h"
#include "kernels/cpu/rows-inl.h"
#include "kernels/cpu/simd-inl.h"
#include "kernels/cpu/softmax-inl.h"

HWY_BEFORE_NAMESPACE();

namespace quire::kernels::cpu {
namespace HWY_NAMESPACE {
namespace {

// From this many query rows on, making the tile fp32 once is cheaper than in every row block.
constexpr int64_t kManyRows = 12;

// The state of one AttendHead call.
struct Task {
  const AttentionCall& call;
  const PlanItem& item;
  int32_t kv_head;
  AttentionScratch& scratch;
  int64_t group;
  int64_t rows;
  size_t head_dim;

  int64_t TokenOf(int64_t row) const { return item.q_row + row / group; }

  int64_t HeadOf(int64_t row) const { return kv_head * group + row % group; }
};

template <typename Load>
HWY_INLINE void FillRow(float* HWY_RESTRICT to, size_t count, Load load) {
  for (size_t i = 0; i < count; ++i) to[i] = load(i);
}

void LoadQuery(const AttentionParams& p, int64_t at, size_t count, float* HWY_RESTRICT to) {
  const auto* halves = static_cast<const uint16_t*>(p.q) + (p.q_dtype == DType::kF32 ? 0 : at);
  switch (p.q_dtype) {
    case DType::kBF16:
      return FillRow(to, count, [halves](size_t i) { return Bf16ToFloat(halves[i]); });
    case DType::kF16:
      return FillRow(to, count, [halves](size_t i) { return Fp16ToFloat(halves[i]); });
    default: {
      const float* floats = static_cast<const float*>(p.q) + at;
      return FillRow(to, count, [floats](size_t i) { return floats[i]; });
    }
  }
}

RowBounds BoundsOf(const Task& task, int64_t row) {
  const bool shared = task.item.sequence == task.call.plan.sequences;
  if (shared) return {0, task.item.kv_end};
  const AttentionMask& mask = task.call.params.mask;
  const int64_t position = task.call.positions[task.TokenOf(row)];
  const int64_t end = mask.causal ? std::min(task.item.kv_end, position + 1) : task.item.kv_end;
  return {mask.window_left < 0 ? 0 : position - mask.window_left, end};
}

void Begin(const Task& task) {
  AttentionScratch& s = task.scratch;
  const int64_t padded = (task.rows + kRowPad - 1) / kRowPad * kRowPad;
  std::fill(s.out, s.out + static_cast<size_t>(padded) * task.head_dim, 0.0f);
  std::fill(s.max, s.max + padded, kMinusInf);
  std::fill(s.sum, s.sum + padded, 0.0f);
  std::fill(s.decay, s.decay + padded, 1.0f);
  s.bounds.clear();
  const AttentionParams& p = task.call.params;
  for (int64_t r = 0; r < task.rows; ++r) {
    const int64_t at = task.TokenOf(r) * p.q_row_stride + task.HeadOf(r) * p.q_head_stride;
    LoadQuery(p, at, task.head_dim, s.q + static_cast<size_t>(r) * task.head_dim);
    s.bounds.push_back(BoundsOf(task, r));
  }
  std::fill(s.q + static_cast<size_t>(task.rows) * task.head_dim,
            s.q + static_cast<size_t>(padded) * task.head_dim, 0.0f);
}

template <DType kType>
LogitRule RuleOf(const Task& task) {
  const AttentionParams& p = task.call.params;
  LogitRule rule;
  rule.scale = p.scale / Stored<kType>::kUnit;
  const ScaleKind kind = task.call.pool.layout.scale_kind;
  if (kind == ScaleKind::kPerTensor) rule.scale *= p.k_scale[0];
  if (kind == ScaleKind::kPerHead) rule.scale *= p.k_scale[task.kv_head];
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

void Softmax(const Task& task, LogitRule rule, const TileRows& tile, int64_t begin) {
  AttentionScratch& s = task.scratch;
  const AttentionParams& p = task.call.params;
  const bool per_token = task.call.pool.layout.scale_kind == ScaleKind::kPerToken;
  rule.k_scale = per_token ? tile.k_scale : nullptr;
  for (int64_t r = 0; r < task.rows; ++r) {
    if (p.alibi_slopes != nullptr) {
      rule.slope = p.alibi_slopes[task.HeadOf(r)];
      rule.distance = static_cast<float>(begin - task.call.positions[task.TokenOf(r)]);
    }
    const TileMask mask =
        MaskOf(s.bounds[static_cast<size_t>(r)], p.mask.keep_first, begin, tile.tokens);
    UpdateRow(s.scores + r * kPlanTileTokens, static_cast<size_t>(tile.tokens), rule, mask,
              per_token ? tile.v_scale : nullptr, s.max + r, s.sum + r, s.decay + r);
  }
}

template <DType kType, int kRows>
void WalkFewRows(const Task& task, const KvTile& view, const TileRows& tile, int64_t begin,
                 const LogitRule& rule) {
  AttentionScratch& s = task.scratch;
  DotRows<kType, kRows>(view, s.q, task.rows, task.head_dim, s.scores);
  Softmax(task, rule, tile, begin);
  SumRows<kType, kRows>(view, s.scores, s.decay, task.rows, task.head_dim, s.out);
}

template <DType kType>
void WalkManyRows(const Task& task, const KvTile& view, const TileRows& tile, int64_t begin,
                  const LogitRule& rule) {
  AttentionScratch& s = task.scratch;
  const int64_t rows = (task.rows + kRowPad - 1) / kRowPad * kRowPad;
  LoadTile<kType>(view, task.head_dim, s.k_tile, s.v_tile);
  MultiplyAll({s.q, task.head_dim, s.k_tile, kPlanTileTokens, task.head_dim, s.scores,
               kPlanTileTokens, nullptr},
              rows, kPlanTileTokens);
  Softmax(task, rule, tile, begin);
  MultiplyAll({s.scores, kPlanTileTokens, s.v_tile, task.head_dim, static_cast<size_t>(view.tokens),
               s.out, task.head_dim, s.decay},
              rows, task.head_dim);
}

template <DType kType>
void WalkTile(const Task& task, const KvTile& view, const TileRows& tile, int64_t begin,
              const LogitRule& rule) {
  if (task.rows >= kManyRows) return WalkManyRows<kType>(task, view, tile, begin, rule);
  if (task.rows == 1) return WalkFewRows<kType, 1>(task, view, tile, begin, rule);
  if (task.rows == 2 || kAccumulators < 16) {
    return WalkFewRows<kType, 2>(task, view, tile, begin, rule);
  }
  return WalkFewRows<kType, kAccumulators / 4>(task, view, tile, begin, rule);
}

KvTile ViewOf(const TileRows& tile, const TileRows& next, int64_t row_bytes) {
  return {tile.k, tile.v, tile.tokens, row_bytes, next.k, next.v, next.tokens};
}

template <DType kType>
void WalkKeys(const Task& task) {
  const bool shared = task.item.sequence == task.call.plan.sequences;
  const int64_t table_row = shared ? 0 : task.item.sequence;
  const TileWalker walker(task.call.pool,
                          task.call.table.ids + table_row * task.call.table.row_stride,
                          task.call.params.layer, task.kv_head);
  const LogitRule rule = RuleOf<kType>(task);
  const int64_t end = task.item.kv_end;
  TileRows tiles[2];
  const auto find = [&](int64_t begin, TileRows* tile) {
    walker.Find(begin, std::min(end, begin + kPlanTileTokens), tile);
  };
  find(task.item.kv_begin, &tiles[0]);
  int current = 0;
  for (int64_t begin = task.item.kv_begin; begin < end; begin += kPlanTileTokens) {
    TileRows& next = tiles[1 - current];
    find(std::min(end, begin + kPlanTileTokens), &next);
    const KvTile view = ViewOf(tiles[current], next, task.call.pool.layout.row_bytes());
    WalkTile<kType>(task, view, tiles[current], begin, rule);
    current = 1 - current;
  }
}

template <typename To, typename Convert>
HWY_INLINE void StoreScaled(const float* HWY_RESTRICT from, size_t count, float factor,
                            To* HWY_RESTRICT to, Convert convert) {
  for (size_t i = 0; i < count; ++i) to[i] = convert(from[i] * factor);
}

void StoreOut(DType dtype, void* out, int64_t at, const float* from, size_t count, float factor) {
  if (dtype == DType::kF32) {
    return StoreScaled(from, count, factor, static_cast<float*>(out) + at,
                       [](float x) { return x; });
  }
  auto* halves = static_cast<uint16_t*>(out) + at;
  if (dtype == DType::kBF16) return StoreScaled(from, count, factor, halves, FloatToBf16);
  return StoreScaled(from, count, factor, halves, FloatToFp16);
}

// Divides by the sum and stores: to the workspace, or to the output with the sink joined.
void End(const Task& task, float unit) {
  const AttentionParams& p = task.call.params;
  const AttentionScratch& s = task.scratch;
  const ScaleKind kind = task.call.pool.layout.scale_kind;
  if (kind == ScaleKind::kPerTensor) unit *= p.v_scale[0];
  if (kind == ScaleKind::kPerHead) unit *= p.v_scale[task.kv_head];
  for (int64_t r = 0; r < task.rows; ++r) {
    const float* out = s.out + static_cast<size_t>(r) * task.head_dim;
    const int64_t head = task.HeadOf(r);
    const float lse = s.sum[r] > 0 ? s.max[r] + std::log(s.sum[r]) : kMinusInf;
    if (task.item.partial_row >= 0) {
      const int64_t cell = (task.item.partial_row + r / task.group) * p.q_heads + head;
      const float factor = s.sum[r] > 0 ? unit / s.sum[r] : 0.0f;
      StoreOut(DType::kF32, task.call.partial_out, cell * static_cast<int64_t>(task.head_dim), out,
               task.head_dim, factor);
      task.call.partial_lse[cell] = lse;
      continue;
    }
    const float* sink = p.sinks != nullptr ? p.sinks + head : nullptr;
    const float top = sink != nullptr ? std::max(s.max[r], *sink) : s.max[r];
    float sum = s.sum[r] > 0 ? s.sum[r] * std::exp(s.max[r] - top) : 0.0f;
    const float factor_top = s.sum[r] > 0 ? std::exp(s.max[r] - top) : 0.0f;
    if (sink != nullptr) sum += std::exp(*sink - top);
    const int64_t token = task.TokenOf(r);
    StoreOut(p.out_dtype, p.out, token * p.out_row_stride + head * p.out_head_stride, out,
             task.head_dim, sum > 0 ? unit * factor_top / sum : 0.0f);
    if (p.lse == nullptr) continue;
    p.lse[token * p.lse_row_stride + head * p.lse_head_stride] =
        sum > 0 ? top + std::log(sum) : kMinusInf;
  }
}

template <DType kType>
void Attend(const Task& task) {
  Begin(task);
  WalkKeys<kType>(task);
  End(task, 1.0f / Stored<kType>::kUnit);
}

void AttendHeadForTarget(const AttentionCall& call, const PlanItem& item, int32_t kv_head,
                         AttentionScratch& scratch) {
  const int64_t group = call.group();
  const Task task{call,
                  item,
                  kv_head,
                  scratch,
                  group,
                  group * item.q_tokens,
                  static_cast<size_t>(call.pool.layout.head_dim)};
  switch (call.pool.layout.dtype) {
    case DType::kF32:
      return Attend<DType::kF32>(task);
    case DType::kF16:
      return Attend<DType::kF16>(task);
    case DType::kBF16:
      return Attend<DType::kBF16>(task);
    case DType::kE4M3:
      return Attend<DType::kE4M3>(task);
    case DType::kI8:
      return Attend<DType::kI8>(task);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace quire::kernels::cpu

HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quire::kernels::cpu {
namespace {
HWY_EXPORT(AttendHeadForTarget);
}  // namespace

void AttendHead(const AttentionCall& call, const PlanItem& item, int32_t kv_head,
                AttentionScratch& scratch) {
  HWY_DYNAMIC_DISPATCH(AttendHeadForTarget)(call, item, kv_head, scratch);
}

}  // namespace quire::kernels::cpu
#endif  // HWY_ONCE
