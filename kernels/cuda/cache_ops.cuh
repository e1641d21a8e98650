// Block operations: writing rows, moving blocks, checksums. Memory bound; one warp per row.
#ifndef QUIRE_KERNELS_CUDA_CACHE_OPS_CUH_
#define QUIRE_KERNELS_CUDA_CACHE_OPS_CUH_

#include "kernels/cuda/frag.cuh"
#include "kernels/hash.h"

namespace quire::kernels::QUIRE_SIMT {

constexpr int kRowThreads = 128;
constexpr int kRowWarps = kRowThreads / kWarpLanes;

// Writing -------------------------------------------------------------------------------------

struct WriteArgs {
  std::byte* pool;
  PagedKvLayout layout;
  RowTensor k;
  RowTensor v;
  const int64_t* slots;
  int64_t tokens;
  const float* k_scale;  // per KV head; not read if scales are per token
  const float* v_scale;
  uint64_t* nan_inputs;
  int32_t layer;
};

// Largest finite |value| of a row.
SIMT_DEVICE float LargestOf(const RowTensor& rows, int64_t from, int dims) {
  float largest = 0.0f;
  for (int dim = Lane(); dim < dims; dim += kWarpLanes) {
    const float value = LoadFloat(rows.dtype, rows.data, from + dim);
    const float magnitude = value < 0 ? -value : value;
    if (magnitude <= 3.40282347e38f) largest = Max(largest, magnitude);
  }
  return WarpMax(largest);
}

SIMT_DEVICE float RowScale(const WriteArgs& args, bool is_v, int64_t from, int head, int64_t at) {
  const PagedKvLayout& layout = args.layout;
  if (layout.scale_kind != ScaleKind::kPerToken) return (is_v ? args.v_scale : args.k_scale)[head];
  const float top = layout.dtype == DType::kE4M3 ? kE4m3Max : kInt8Max;
  float scale = LargestOf(is_v ? args.v : args.k, from, layout.head_dim) / top;
  if (!(scale > 0)) scale = 1.0f;
  if (Lane() == 0) reinterpret_cast<float*>(args.pool)[at] = scale;
  return scale;
}

// Row r: token r / (2 * kv_heads), then K or V, then head.
SIMT_KERNEL void SIMT_BOUNDS(kRowThreads, 128) WriteKernel(const WriteArgs args) {
  const PagedKvLayout& layout = args.layout;
  const int64_t row = CtaIndex() * kRowWarps + Warp();
  const int64_t token = row / (2 * layout.kv_heads);
  if (token >= args.tokens || args.slots[token] < 0) return;
  const bool is_v = row / layout.kv_heads % 2 != 0;
  const int head = static_cast<int>(row % layout.kv_heads);
  const int64_t block = args.slots[token] >> layout.log2_block_tokens;
  const int64_t slot = args.slots[token] & (layout.block_tokens() - 1);
  const RowTensor& rows = is_v ? args.v : args.k;
  const int64_t from = token * rows.row_stride + head * rows.head_stride;
  const bool narrow = ElementBytes(layout.dtype) == 1;
  float scale = 1.0f;
  if (narrow) {
    const int64_t at = layout.ScaleOffset(block, args.layer, head, is_v, slot);
    scale = RowScale(args, is_v, from, head, at);
  }
  const int64_t to = layout.RowOffset(block, args.layer, head, is_v, slot);
  uint64_t nans = 0;
  for (int dim = Lane(); dim < layout.head_dim; dim += kWarpLanes) {
    const float value = LoadFloat(rows.dtype, rows.data, from + dim);
    if (narrow && value != value) ++nans;
    StoreElement(layout.dtype, args.pool, to + dim, narrow ? value / scale : value);
  }
  if (!narrow) return;
  nans = WarpSum(nans);
  if (nans > 0 && Lane() == 0) AtomicAdd(args.nan_inputs, nans);
}

// Moving --------------------------------------------------------------------------------------

// `source` and `destination` may be dense memory: a layout like any other.
struct MoveOrder {
  int32_t source;
  int32_t destination;
  int32_t tokens;
};

struct MoveArgs {
  const std::byte* from;
  std::byte* to;
  PagedKvLayout from_layout;
  PagedKvLayout to_layout;
  const MoveOrder* orders;
  int32_t ctas_per_order;
};

SIMT_DEVICE void MoveRow(const MoveArgs& args, const MoveOrder& order, int64_t run, int64_t slot) {
  const PagedKvLayout& from = args.from_layout;
  const PagedKvLayout& to = args.to_layout;
  const bool is_v = run % 2 != 0;
  const int64_t head = run / 2 % from.kv_heads;
  const int64_t layer = run / 2 / from.kv_heads;
  const int64_t element = ElementBytes(from.dtype);
  const std::byte* source =
      args.from + from.RowOffset(order.source, layer, head, is_v, slot) * element;
  std::byte* target = args.to + to.RowOffset(order.destination, layer, head, is_v, slot) * element;
  for (int64_t chunk = Lane(); chunk < from.row_bytes() / 16; chunk += kWarpLanes) {
    Store16(target + chunk * 16, Load16(source + chunk * 16));
  }
  if (from.scale_kind != ScaleKind::kPerToken || Lane() != 0) return;
  reinterpret_cast<float*>(args.to)[to.ScaleOffset(order.destination, layer, head, is_v, slot)] =
      reinterpret_cast<const float*>(
          args.from)[from.ScaleOffset(order.source, layer, head, is_v, slot)];
}

SIMT_KERNEL void SIMT_BOUNDS(kRowThreads, 128) MoveKernel(const MoveArgs args) {
  const MoveOrder order = args.orders[CtaIndex() / args.ctas_per_order];
  const int64_t share = CtaIndex() % args.ctas_per_order;
  const int64_t rows =
      int64_t{2} * args.from_layout.layers * args.from_layout.kv_heads * order.tokens;
  const int64_t step = int64_t{args.ctas_per_order} * kRowWarps;
  for (int64_t row = share * kRowWarps + Warp(); row < rows; row += step) {
    MoveRow(args, order, row / order.tokens, row % order.tokens);
  }
}

// Checksums -----------------------------------------------------------------------------------

struct SumOrder {
  int32_t block;
  int32_t slot_begin;
  int32_t slot_end;
};

struct SumArgs {
  const std::byte* pool;
  PagedKvLayout layout;
  uint64_t seed;
  const SumOrder* orders;
  uint64_t* sums;  // two per order, zero before
  int32_t ctas_per_order;
};

// One step of the sum over a row: two 32-bit words of data against two of the key stream.
SIMT_DEVICE uint64_t SumStep(uint64_t word, uint64_t key) {
  const uint32_t low = static_cast<uint32_t>(word) + static_cast<uint32_t>(key);
  const uint32_t high = static_cast<uint32_t>(word >> 32) + static_cast<uint32_t>(key >> 32);
  return static_cast<uint64_t>(low) * high;
}

SIMT_DEVICE void SumRow(const SumArgs& args, const SumOrder& order, int64_t run, int64_t slot,
                        uint64_t* sums) {
  const PagedKvLayout& layout = args.layout;
  const bool is_v = run % 2 != 0;
  const int64_t head = run / 2 % layout.kv_heads;
  const int64_t layer = run / 2 / layout.kv_heads;
  const uint64_t row = static_cast<uint64_t>(run) * 256 + static_cast<uint64_t>(slot);
  const int64_t words = layout.row_bytes() / 8;
  const int64_t scales = layout.scale_kind == ScaleKind::kPerToken ? 1 : 0;
  const auto* data = reinterpret_cast<const uint64_t*>(
      args.pool +
      layout.RowOffset(order.block, layer, head, is_v, slot) * ElementBytes(layout.dtype));
  for (int64_t c = Lane(); c < words + scales; c += kWarpLanes) {
    const uint64_t word =
        c < words ? data[c]
                  : reinterpret_cast<const uint32_t*>(
                        args.pool)[layout.ScaleOffset(order.block, layer, head, is_v, slot)];
    const uint64_t column = Mix64((static_cast<uint64_t>(c) + 1) * kGolden);
    for (uint64_t j = 0; j < 2; ++j) {
      sums[j] += SumStep(word, Mix64(args.seed + (2 * row + j + 1) * kGolden) ^ column);
    }
  }
}

SIMT_KERNEL void SIMT_BOUNDS(kRowThreads, 128) SumKernel(const SumArgs args) {
  const int64_t index = CtaIndex() / args.ctas_per_order;
  const SumOrder order = args.orders[index];
  const int64_t share = CtaIndex() % args.ctas_per_order;
  const int64_t slots = order.slot_end - order.slot_begin;
  const int64_t rows = int64_t{2} * args.layout.layers * args.layout.kv_heads * slots;
  const int64_t step = int64_t{args.ctas_per_order} * kRowWarps;
  uint64_t sums[2] = {0, 0};
  for (int64_t row = share * kRowWarps + Warp(); row < rows; row += step) {
    SumRow(args, order, row / slots, order.slot_begin + row % slots, sums);
  }
  for (int j = 0; j < 2; ++j) {
    const uint64_t total = WarpSum(sums[j]);
    if (Lane() == 0) AtomicAdd(args.sums + 2 * index + j, total);
  }
}

}  // namespace quire::kernels::QUIRE_SIMT

#endif  // QUIRE_KERNELS_CUDA_CACHE_OPS_CUH_
