#include <algorithm>
#include <vector>

#include "kernels/cuda/cache_ops.cuh"
#include "kernels/cuda/calls.h"

namespace quire::kernels::QUIRE_SIMT {
namespace {

// CTAs that share the rows of one order, so that few orders fill a device too.
constexpr int64_t kRowsPerCta = 64;
constexpr int64_t kMaxCtasPerOrder = 64;

int32_t CtasPerOrder(const PagedKvLayout& layout) {
  const int64_t wanted = layout.rows_per_block() / kRowsPerCta;
  return static_cast<int32_t>(std::clamp<int64_t>(wanted, 1, kMaxCtasPerOrder));
}

size_t RowsBytes(const KvRows& rows, bool is_v, int64_t tokens, const PagedKvLayout& layout) {
  const int64_t token_stride = is_v ? rows.v_token_stride : rows.k_token_stride;
  const int64_t head_stride = is_v ? rows.v_head_stride : rows.k_head_stride;
  const int64_t last = (tokens - 1) * token_stride + (layout.kv_heads - 1) * head_stride;
  return static_cast<size_t>((last + layout.head_dim) * ElementBytes(rows.dtype));
}

// One scale per head whatever the layout's kind is.
std::vector<float> ScalesOf(const PagedKvLayout& layout, const float* given) {
  std::vector<float> scales(static_cast<size_t>(layout.kv_heads), 1.0f);
  for (size_t head = 0; head < scales.size(); ++head) {
    if (layout.scale_kind == ScaleKind::kPerTensor) scales[head] = given[0];
    if (layout.scale_kind == ScaleKind::kPerHead) scales[head] = given[head];
  }
  return scales;
}

}  // namespace

void RunWrite(Job& job, const KvPoolView& pool, const KvRows& rows, const TokenTargets& targets,
              uint64_t* nan_inputs) {
  if (targets.tokens == 0) return;
  Pack pack;
  const size_t slots_at = pack.Add(targets.slots, static_cast<size_t>(targets.tokens));
  const size_t k_scale_at = pack.Add(ScalesOf(pool.layout, rows.k_scale));
  const size_t v_scale_at = pack.Add(ScalesOf(pool.layout, rows.v_scale));
  const std::byte* base = job.Upload(pack);
  WriteArgs args{};
  args.pool = pool.base;
  args.layout = pool.layout;
  const auto tensor = [&](const void* data, bool is_v) {
    return const_cast<std::byte*>(job.In(data, RowsBytes(rows, is_v, targets.tokens, pool.layout)));
  };
  args.k = {tensor(rows.k, false), rows.k_token_stride, rows.k_head_stride, rows.dtype};
  args.v = {tensor(rows.v, true), rows.v_token_stride, rows.v_head_stride, rows.dtype};
  args.slots = ArrayAt<int64_t>(base, slots_at);
  args.tokens = targets.tokens;
  args.k_scale = ArrayAt<float>(base, k_scale_at);
  args.v_scale = ArrayAt<float>(base, v_scale_at);
  args.nan_inputs =
      reinterpret_cast<uint64_t*>(nan_inputs != nullptr ? job.InOut(nan_inputs, sizeof(*nan_inputs))
                                                        : job.Scratch(sizeof(*nan_inputs)));
  args.layer = rows.layer;
  const int64_t count = targets.tokens * 2 * pool.layout.kv_heads;
  job.Launch(&WriteKernel, (count + kRowWarps - 1) / kRowWarps, kRowThreads, 0, args);
}

void RunMoves(Job& job, const std::byte* from, const PagedKvLayout& from_layout, std::byte* to,
              const PagedKvLayout& to_layout, std::span<const CopyOrder> orders) {
  if (orders.empty()) return;
  std::vector<MoveOrder> moves;
  for (const CopyOrder& order : orders) {
    moves.push_back({order.source, order.destination, order.tokens});
  }
  Pack pack;
  const size_t at = pack.Add(moves);
  const std::byte* base = job.Upload(pack);
  MoveArgs args{};
  args.from = from;
  args.to = to;
  args.from_layout = from_layout;
  args.to_layout = to_layout;
  args.orders = ArrayAt<MoveOrder>(base, at);
  args.ctas_per_order = CtasPerOrder(from_layout);
  const auto ctas = static_cast<int64_t>(moves.size()) * args.ctas_per_order;
  job.Launch(&MoveKernel, ctas, kRowThreads, 0, args);
}

PagedKvLayout DenseLayout(const PagedKvLayout& layout) {
  PagedKvLayout dense = layout;
  const int64_t run = int64_t{layout.block_tokens()} * layout.head_dim;
  dense.preset = LayoutPreset::kCustom;
  dense.token_stride = layout.head_dim;
  dense.k_offset = 0;
  dense.v_offset = run;
  dense.head_stride = 2 * run;
  dense.layer_stride = layout.kv_heads * dense.head_stride;
  dense.block_bytes = layout.content_bytes();
  dense.block_stride = dense.block_bytes / ElementBytes(layout.dtype);
  dense.scale_v_offset = layout.block_tokens();
  dense.scale_head_stride = int64_t{2} * layout.block_tokens();
  dense.scale_layer_stride = layout.kv_heads * dense.scale_head_stride;
  dense.scale_block_stride = dense.block_bytes / 4;
  dense.scale_offset = layout.rows_per_block() * layout.row_bytes() / 4;
  return dense;
}

void RunChecksums(Job& job, const KvPoolView& pool, uint64_t seed,
                  std::span<const ChecksumOrder> orders, std::span<ChecksumSums> sums) {
  if (orders.empty()) return;
  std::vector<SumOrder> list;
  for (const ChecksumOrder& order : orders) {
    list.push_back({order.block, order.slot_begin, order.slot_end});
  }
  for (ChecksumSums& sum : sums) sum = {0, 0};
  Pack pack;
  const size_t at = pack.Add(list);
  const std::byte* base = job.Upload(pack);
  SumArgs args{};
  args.pool = pool.base;
  args.layout = pool.layout;
  args.seed = seed;
  args.orders = ArrayAt<SumOrder>(base, at);
  args.sums = reinterpret_cast<uint64_t*>(job.InOut(sums.data(), sums.size_bytes()));
  args.ctas_per_order = CtasPerOrder(pool.layout);
  const auto ctas = static_cast<int64_t>(list.size()) * args.ctas_per_order;
  job.Launch(&SumKernel, ctas, kRowThreads, 0, args);
}

}  // namespace quire::kernels::QUIRE_SIMT
