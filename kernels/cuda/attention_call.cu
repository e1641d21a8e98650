#include <algorithm>
#include <vector>

#include "kernels/cuda/calls.h"
#include "kernels/cuda/merge.cuh"
#include "kernels/cuda/plain.cuh"
#include "kernels/validate.h"

namespace quire::kernels::QUIRE_SIMT {
namespace {

// Items of the plan that one kernel takes, still grouped by part.
struct ItemList {
  std::vector<AttentionItem> items;
  std::vector<int32_t> part_begin = {0};

  int64_t parts() const { return static_cast<int64_t>(part_begin.size()) - 1; }

  void ClosePart() {
    const auto count = static_cast<int32_t>(items.size());
    if (part_begin.back() != count) part_begin.push_back(count);
  }
};

AttentionItem ItemOf(const PlanItem& item, const AttentionPlan& plan) {
  // A shared prefix lies in the first table.
  const int32_t row = item.sequence < plan.sequences ? item.sequence : 0;
  return {row,
          item.q_tokens,
          static_cast<int32_t>(item.kv_begin),
          static_cast<int32_t>(item.kv_end),
          item.q_row,
          item.partial_row};
}

ItemList Select(const AttentionPlan& plan, int32_t group, bool append) {
  ItemList list;
  for (size_t part = 0; part + 1 < plan.part_begin.size(); ++part) {
    for (int32_t i = plan.part_begin[part]; i < plan.part_begin[part + 1]; ++i) {
      const PlanItem& item = plan.items[static_cast<size_t>(i)];
      if ((item.q_tokens * group > kWarpRows) == append) list.items.push_back(ItemOf(item, plan));
    }
    list.ClosePart();
  }
  return list;
}

std::vector<int32_t> PositionsOf(const BlockTableView& table, const AttentionParams& params) {
  std::vector<int32_t> positions(static_cast<size_t>(params.q_rows));
  for (const PlanSequence& s : MakeSequences(table, params)) {
    for (int64_t i = 0; i < s.q_tokens; ++i) {
      positions[static_cast<size_t>(s.q_row + i)] = static_cast<int32_t>(s.first_position + i);
    }
  }
  return positions;
}

std::vector<MergeRow> MergeRowsOf(const AttentionPlan& plan) {
  std::vector<MergeRow> rows;
  for (const PlanMerge& merge : plan.merges) {
    for (int32_t token = 0; token < merge.q_tokens; ++token) {
      rows.push_back({merge.q_row + token, merge.first_part, merge.last_part, token});
    }
  }
  return rows;
}

// One scale per KV head whatever the layout's kind is.
std::vector<float> ScalesOf(const PagedKvLayout& layout, const float* given) {
  std::vector<float> scales(static_cast<size_t>(layout.kv_heads), 1.0f);
  for (size_t head = 0; head < scales.size(); ++head) {
    if (layout.scale_kind == ScaleKind::kPerTensor) scales[head] = given[0];
    if (layout.scale_kind == ScaleKind::kPerHead) scales[head] = given[head];
  }
  return scales;
}

size_t AddOptional(Pack& pack, const float* values, int32_t count) {
  return pack.Add(values, values != nullptr ? static_cast<size_t>(count) : 0);
}

// Where the host arrays of a call are in its upload.
struct Offsets {
  size_t ids, positions, slopes, sinks, k_scale, v_scale;
  size_t items[2], parts[2];
  size_t merge_rows, part_rows;
};

size_t TensorBytes(DType dtype, int64_t rows, int64_t row_stride, int64_t heads,
                   int64_t head_stride, int64_t dim) {
  if (rows == 0) return 0;
  return static_cast<size_t>(((rows - 1) * row_stride + (heads - 1) * head_stride + dim) *
                             ElementBytes(dtype));
}

AttentionArgs ArgsOf(const KvPoolView& pool, const BlockTableView& table,
                     const AttentionParams& p) {
  AttentionArgs args{};
  args.pool = pool.base;
  args.layout = pool.layout;
  args.ids_stride = table.columns;
  args.q_heads = p.q_heads;
  args.group = p.q_heads / pool.layout.kv_heads;
  args.layer = p.layer;
  args.window_left = p.mask.window_left;
  args.keep_first = p.mask.window_left >= 0 ? p.mask.keep_first : 0;
  args.causal = p.mask.causal;
  args.scale = p.scale;
  args.softcap = p.softcap;
  return args;
}

void StageTensors(Job& job, const AttentionParams& p, int64_t dim, AttentionArgs* args) {
  const size_t q_bytes =
      TensorBytes(p.q_dtype, p.q_rows, p.q_row_stride, p.q_heads, p.q_head_stride, dim);
  const size_t out_bytes =
      TensorBytes(p.out_dtype, p.q_rows, p.out_row_stride, p.q_heads, p.out_head_stride, dim);
  args->q = {const_cast<std::byte*>(job.In(p.q, q_bytes)), p.q_row_stride, p.q_head_stride,
             p.q_dtype};
  args->out = {job.InOut(p.out, out_bytes), p.out_row_stride, p.out_head_stride, p.out_dtype};
  args->lse_row_stride = p.lse_row_stride;
  args->lse_head_stride = p.lse_head_stride;
  if (p.lse == nullptr) return;
  const size_t lse_bytes =
      TensorBytes(DType::kF32, p.q_rows, p.lse_row_stride, p.q_heads, p.lse_head_stride, 1);
  args->lse = reinterpret_cast<float*>(job.InOut(p.lse, lse_bytes));
}

void LaunchItems(Job& job, bool append, int64_t ctas, const AttentionArgs& args) {
  if (args.layout.dtype == DType::kF32) {
    return job.Launch(&PlainKernel, ctas, kPlainThreads, 0, args);
  }
  switch (args.layout.head_dim) {
    case 64:
      return LaunchAttention<64>(job, append, ctas, args);
    case 80:
      return LaunchAttention<80>(job, append, ctas, args);
    case 96:
      return LaunchAttention<96>(job, append, ctas, args);
    case 128:
      return LaunchAttention<128>(job, append, ctas, args);
    case 192:
      return LaunchAttention<192>(job, append, ctas, args);
    default:
      return LaunchAttention<256>(job, append, ctas, args);
  }
}

void LaunchMerge(Job& job, const MergeArgs& args) {
  job.Launch(&MergeKernel, (args.cells + kMergeWarps - 1) / kMergeWarps, kMergeThreads, 0, args);
}

Offsets PackCall(const KvPoolView& pool, const BlockTableView& table, const AttentionParams& p,
                 const AttentionPlan& plan, const ItemList* lists, Pack* pack) {
  Offsets at{};
  const auto columns = static_cast<size_t>(table.columns);
  for (int64_t row = 0; row < table.rows; ++row) {
    const size_t begin = pack->AddMore(table.ids + row * table.row_stride, columns);
    if (row == 0) at.ids = begin;
  }
  at.positions = pack->Add(PositionsOf(table, p));
  at.slopes = AddOptional(*pack, p.alibi_slopes, p.q_heads);
  at.sinks = AddOptional(*pack, p.sinks, p.q_heads);
  at.k_scale = pack->Add(ScalesOf(pool.layout, p.k_scale));
  at.v_scale = pack->Add(ScalesOf(pool.layout, p.v_scale));
  for (int i = 0; i < 2; ++i) {
    at.items[i] = pack->Add(lists[i].items);
    at.parts[i] = pack->Add(lists[i].part_begin);
  }
  at.merge_rows = pack->Add(MergeRowsOf(plan));
  at.part_rows = pack->Add(plan.merge_rows);
  return at;
}

void MergePlan(Job& job, const AttentionArgs& args, const std::byte* base, const Offsets& at,
               int64_t rows) {
  MergeArgs merge{};
  merge.rows = ArrayAt<MergeRow>(base, at.merge_rows);
  merge.part_rows = ArrayAt<int64_t>(base, at.part_rows);
  merge.cells = rows * args.q_heads;
  merge.partial_out = args.partial_out;
  merge.partial_lse = args.partial_lse;
  merge.out = args.out;
  merge.lse = args.lse;
  merge.lse_row_stride = args.lse_row_stride;
  merge.lse_head_stride = args.lse_head_stride;
  merge.sinks = args.sinks;
  merge.heads = args.q_heads;
  merge.head_dim = args.layout.head_dim;
  LaunchMerge(job, merge);
}

int64_t MergeRowCount(const AttentionPlan& plan) {
  int64_t rows = 0;
  for (const PlanMerge& merge : plan.merges) rows += merge.q_tokens;
  return rows;
}

}  // namespace

void RunAttention(Job& job, const KvPoolView& pool, const BlockTableView& table,
                  const AttentionParams& params, const AttentionPlan& plan,
                  std::span<std::byte> workspace) {
  AttentionArgs args = ArgsOf(pool, table, params);
  const ItemList lists[2] = {Select(plan, args.group, false), Select(plan, args.group, true)};
  Pack pack;
  const Offsets at = PackCall(pool, table, params, plan, lists, &pack);
  const std::byte* base = job.Upload(pack);
  StageTensors(job, params, pool.layout.head_dim, &args);
  const auto bytes = static_cast<size_t>(plan.workspace_bytes);
  const int64_t cells = plan.partial_rows * params.q_heads;
  args.partial_out = reinterpret_cast<float*>(job.Reachable(workspace.data(), bytes));
  args.partial_lse = args.partial_out + cells * pool.layout.head_dim;
  args.ids = ArrayAt<int32_t>(base, at.ids);
  args.positions = ArrayAt<int32_t>(base, at.positions);
  if (params.alibi_slopes != nullptr) args.alibi_slopes = ArrayAt<float>(base, at.slopes);
  if (params.sinks != nullptr) args.sinks = ArrayAt<float>(base, at.sinks);
  args.k_scale = ArrayAt<float>(base, at.k_scale);
  args.v_scale = ArrayAt<float>(base, at.v_scale);
  for (int i = 0; i < 2; ++i) {
    args.items = ArrayAt<AttentionItem>(base, at.items[i]);
    args.part_begin = ArrayAt<int32_t>(base, at.parts[i]);
    LaunchItems(job, i == 1, lists[i].parts() * pool.layout.kv_heads, args);
  }
  MergePlan(job, args, base, at, MergeRowCount(plan));
}

void RunMerge(Job& job, const MergeParams& p) {
  std::vector<MergeRow> rows;
  std::vector<int64_t> parts;
  for (int64_t row = 0; row < p.rows; ++row) {
    rows.push_back({row, 0, static_cast<int32_t>(p.states), static_cast<int32_t>(row)});
  }
  for (int64_t state = 0; state < p.states; ++state) parts.push_back(state * p.rows);
  Pack pack;
  const size_t rows_at = pack.Add(rows);
  const size_t parts_at = pack.Add(parts);
  const size_t sinks_at = AddOptional(pack, p.sinks, p.heads);
  const std::byte* base = job.Upload(pack);
  const auto cells = static_cast<size_t>(p.rows * p.heads);
  const size_t states = cells * static_cast<size_t>(p.states);
  const auto dim = static_cast<size_t>(p.head_dim);
  MergeArgs args{};
  args.rows = ArrayAt<MergeRow>(base, rows_at);
  args.part_rows = ArrayAt<int64_t>(base, parts_at);
  args.cells = static_cast<int64_t>(cells);
  args.partial_out = reinterpret_cast<const float*>(job.In(p.partial_out, states * dim * 4));
  args.partial_lse = reinterpret_cast<const float*>(job.In(p.partial_lse, states * 4));
  const int64_t row_stride = int64_t{p.heads} * p.head_dim;
  const size_t out_bytes = cells * dim * static_cast<size_t>(ElementBytes(p.out_dtype));
  args.out = {job.InOut(p.out, out_bytes), row_stride, p.head_dim, p.out_dtype};
  if (p.lse != nullptr) args.lse = reinterpret_cast<float*>(job.InOut(p.lse, cells * 4));
  args.lse_row_stride = p.heads;
  args.lse_head_stride = 1;
  if (p.sinks != nullptr) args.sinks = ArrayAt<float>(base, sinks_at);
  args.heads = p.heads;
  args.head_dim = p.head_dim;
  LaunchMerge(job, args);
}

}  // namespace quire::kernels::QUIRE_SIMT
