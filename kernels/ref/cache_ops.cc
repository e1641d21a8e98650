#include <cmath>
#include <cstring>

#include "kernels/dtype.h"
#include "kernels/hash.h"
#include "kernels/ref/reference.h"

namespace quire::kernels::ref {
namespace {

// Largest |finite value| of a row over the largest code; 1 for a row of zeros.
float TokenScale(DType pool_dtype, DType dtype, const void* rows, int64_t at, int64_t d) {
  float largest = 0;
  for (int64_t i = 0; i < d; ++i) {
    const float value = std::fabs(LoadElement(dtype, rows, at + i));
    if (std::isfinite(value) && value > largest) largest = value;
  }
  const float scale = largest / (pool_dtype == DType::kE4M3 ? kE4m3Max : kInt8Max);
  return scale > 0 ? scale : 1.0f;
}

struct RowSource {
  const void* data;
  int64_t token_stride;
  int64_t head_stride;
  const float* scales;
};

RowSource SourceOf(const KvRows& rows, bool is_v) {
  if (is_v) return {rows.v, rows.v_token_stride, rows.v_head_stride, rows.v_scale};
  return {rows.k, rows.k_token_stride, rows.k_head_stride, rows.k_scale};
}

// Returns NaN inputs.
int64_t WriteRow(const KvPoolView& pool, const KvRows& rows, bool is_v, int64_t token, int64_t head,
                 int64_t target) {
  const PagedKvLayout& layout = pool.layout;
  const RowSource source = SourceOf(rows, is_v);
  const int64_t from = token * source.token_stride + head * source.head_stride;
  const int64_t block = target / layout.block_tokens();
  const int64_t slot = target % layout.block_tokens();
  float scale = 1.0f;
  if (layout.scale_kind == ScaleKind::kPerTensor) scale = source.scales[0];
  if (layout.scale_kind == ScaleKind::kPerHead) scale = source.scales[head];
  if (layout.scale_kind == ScaleKind::kPerToken) {
    scale = TokenScale(layout.dtype, rows.dtype, source.data, from, layout.head_dim);
    StoreElement(DType::kF32, pool.base, layout.ScaleOffset(block, rows.layer, head, is_v, slot),
                 scale);
  }
  const int64_t to = layout.RowOffset(block, rows.layer, head, is_v, slot);
  int64_t nans = 0;
  for (int64_t i = 0; i < layout.head_dim; ++i) {
    const float value = LoadElement(rows.dtype, source.data, from + i);
    if (std::isnan(value) && ElementBytes(layout.dtype) == 1) ++nans;
    const float stored = ElementBytes(layout.dtype) == 1 ? value / scale : value;
    StoreElement(layout.dtype, pool.base, to + i, stored);
  }
  return nans;
}

// Calls row(is_v, layer, head, slot) for the first `tokens` slots, in the order of dense blocks.
template <typename Row>
void ForEachRow(const PagedKvLayout& layout, int64_t tokens, Row row) {
  for (int64_t layer = 0; layer < layout.layers; ++layer) {
    for (int64_t head = 0; head < layout.kv_heads; ++head) {
      for (const bool is_v : {false, true}) {
        for (int64_t slot = 0; slot < tokens; ++slot) row(is_v, layer, head, slot);
      }
    }
  }
}

std::byte* RowAt(const KvPoolView& pool, int64_t block, int64_t layer, int64_t head, bool is_v,
                 int64_t slot) {
  return pool.base +
         pool.layout.RowOffset(block, layer, head, is_v, slot) * ElementBytes(pool.layout.dtype);
}

std::byte* ScaleAt(const KvPoolView& pool, int64_t block, int64_t layer, int64_t head, bool is_v,
                   int64_t slot) {
  return pool.base + pool.layout.ScaleOffset(block, layer, head, is_v, slot) * 4;
}

bool HasScales(const KvPoolView& pool) { return pool.layout.scale_kind == ScaleKind::kPerToken; }

// One step of the sum over a row: two 32-bit words of data against two of the key stream.
uint64_t Product(uint64_t word, uint64_t key) {
  const uint64_t low = static_cast<uint32_t>(word) + static_cast<uint32_t>(key);
  const uint64_t high = static_cast<uint32_t>(word >> 32) + static_cast<uint32_t>(key >> 32);
  return static_cast<uint64_t>(static_cast<uint32_t>(low)) * static_cast<uint32_t>(high);
}

}  // namespace

int64_t Write(const KvPoolView& pool, const KvRows& rows, const TokenTargets& targets) {
  int64_t nans = 0;
  for (int64_t token = 0; token < targets.tokens; ++token) {
    if (targets.slots[token] < 0) continue;
    for (int64_t head = 0; head < pool.layout.kv_heads; ++head) {
      for (const bool is_v : {false, true}) {
        nans += WriteRow(pool, rows, is_v, token, head, targets.slots[token]);
      }
    }
  }
  return nans;
}

void Copy(const KvPoolView& pool, const CopyOrder& order) {
  if (order.source == order.destination) return;
  const auto row_bytes = static_cast<size_t>(pool.layout.row_bytes());
  ForEachRow(pool.layout, order.tokens, [&](bool is_v, int64_t layer, int64_t head, int64_t slot) {
    std::memcpy(RowAt(pool, order.destination, layer, head, is_v, slot),
                RowAt(pool, order.source, layer, head, is_v, slot), row_bytes);
    if (!HasScales(pool)) return;
    std::memcpy(ScaleAt(pool, order.destination, layer, head, is_v, slot),
                ScaleAt(pool, order.source, layer, head, is_v, slot), 4);
  });
}

void Gather(const KvPoolView& pool, int32_t block, std::byte* destination) {
  const auto row_bytes = static_cast<size_t>(pool.layout.row_bytes());
  const int64_t tokens = pool.layout.block_tokens();
  std::byte* scales = destination + pool.layout.rows_per_block() * pool.layout.row_bytes();
  ForEachRow(pool.layout, tokens, [&](bool is_v, int64_t layer, int64_t head, int64_t slot) {
    std::memcpy(destination, RowAt(pool, block, layer, head, is_v, slot), row_bytes);
    destination += row_bytes;
    if (!HasScales(pool)) return;
    std::memcpy(scales, ScaleAt(pool, block, layer, head, is_v, slot), 4);
    scales += 4;
  });
}

void Scatter(const KvPoolView& pool, int32_t block, const std::byte* source) {
  const auto row_bytes = static_cast<size_t>(pool.layout.row_bytes());
  const int64_t tokens = pool.layout.block_tokens();
  const std::byte* scales = source + pool.layout.rows_per_block() * pool.layout.row_bytes();
  ForEachRow(pool.layout, tokens, [&](bool is_v, int64_t layer, int64_t head, int64_t slot) {
    std::memcpy(RowAt(pool, block, layer, head, is_v, slot), source, row_bytes);
    source += row_bytes;
    if (!HasScales(pool)) return;
    std::memcpy(ScaleAt(pool, block, layer, head, is_v, slot), scales, 4);
    scales += 4;
  });
}

ChecksumSums Checksum(const KvPoolView& pool, uint64_t seed, const ChecksumOrder& order) {
  const PagedKvLayout& layout = pool.layout;
  const int64_t words = layout.row_bytes() / 8;
  ChecksumSums sums = {0, 0};
  ForEachRow(layout, order.slot_end, [&](bool is_v, int64_t layer, int64_t head, int64_t slot) {
    if (slot < order.slot_begin) return;
    const auto row =
        static_cast<uint64_t>(((layer * layout.kv_heads + head) * 2 + (is_v ? 1 : 0)) * 256 + slot);
    const std::byte* data = RowAt(pool, order.block, layer, head, is_v, slot);
    for (int64_t c = 0; c < words + (HasScales(pool) ? 1 : 0); ++c) {
      uint64_t word = 0;
      if (c < words) std::memcpy(&word, data + c * 8, 8);
      if (c == words) std::memcpy(&word, ScaleAt(pool, order.block, layer, head, is_v, slot), 4);
      for (uint64_t j = 0; j < 2; ++j) {
        const uint64_t key = Mix64(seed + (2 * row + j + 1) * kGolden) ^
                             Mix64((static_cast<uint64_t>(c) + 1) * kGolden);
        sums[j] += Product(word, key);
      }
    }
  });
  return sums;
}

}  // namespace quire::kernels::ref
