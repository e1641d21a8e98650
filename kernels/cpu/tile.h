// Up to 64 neighbouring keys of one (sequence, layer, KV head), wherever their blocks lie.
#ifndef QUIRE_KERNELS_CPU_TILE_H_
#define QUIRE_KERNELS_CPU_TILE_H_

#include <cstddef>
#include <cstdint>

#include "kernels/backend.h"

namespace quire::kernels::cpu {

// Row addresses of one tile. Entries from `tokens` up to 64 repeat the last row.
struct TileRows {
  const std::byte* k[kPlanTileTokens];
  const std::byte* v[kPlanTileTokens];
  // Per-token scales; only for ScaleKind::kPerToken.
  float k_scale[kPlanTileTokens];
  float v_scale[kPlanTileTokens];
  int tokens = 0;
};

// What a kernel sees of a tile, and of the one after it, which it prefetches.
struct KvTile {
  const std::byte* const* k = nullptr;
  const std::byte* const* v = nullptr;
  int tokens = 0;
  int64_t row_bytes = 0;
  const std::byte* const* next_k = nullptr;
  const std::byte* const* next_v = nullptr;
  int next_tokens = 0;
};

// Walks the keys of one item on one KV head.
class TileWalker {
 public:
  TileWalker(const KvPoolView& pool, const int32_t* ids, int32_t layer, int32_t head)
      : pool_(pool), ids_(ids), layer_(layer), head_(head) {}

  // Addresses of keys begin..end - 1, at most 64.
  void Find(int64_t begin, int64_t end, TileRows* rows) const {
    const PagedKvLayout& layout = pool_.layout;
    const int64_t element = ElementBytes(layout.dtype);
    const int64_t step = layout.token_stride * element;
    const int64_t mask = layout.block_tokens() - 1;
    int count = 0;
    for (int64_t t = begin; t < end;) {
      const int64_t slot = t & mask;
      const int64_t block = ids_[t >> layout.log2_block_tokens];
      const std::byte* k =
          pool_.base + layout.RowOffset(block, layer_, head_, false, slot) * element;
      const std::byte* v =
          pool_.base + layout.RowOffset(block, layer_, head_, true, slot) * element;
      const int64_t run = end - t < mask + 1 - slot ? end - t : mask + 1 - slot;
      if (layout.scale_kind == ScaleKind::kPerToken) FindScales(block, slot, run, count, rows);
      for (int64_t i = 0; i < run; ++i, ++count) {
        rows->k[count] = k + i * step;
        rows->v[count] = v + i * step;
      }
      t += run;
    }
    rows->tokens = count;
    for (int i = count; count > 0 && i < kPlanTileTokens; ++i) {
      rows->k[i] = rows->k[count - 1];
      rows->v[i] = rows->v[count - 1];
    }
  }

 private:
  void FindScales(int64_t block, int64_t slot, int64_t run, int count, TileRows* rows) const {
    const auto* scales = reinterpret_cast<const float*>(pool_.base);
    const float* k = scales + pool_.layout.ScaleOffset(block, layer_, head_, false, slot);
    const float* v = scales + pool_.layout.ScaleOffset(block, layer_, head_, true, slot);
    for (int64_t i = 0; i < run; ++i) {
      rows->k_scale[count + i] = k[i];
      rows->v_scale[count + i] = v[i];
    }
  }

  const KvPoolView& pool_;
  const int32_t* ids_;
  int32_t layer_;
  int32_t head_;
};

}  // namespace quire::kernels::cpu

#endif  // QUIRE_KERNELS_CPU_TILE_H_
