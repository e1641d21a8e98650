// Up to 64 neighbouring keys of one (sequence, layer, KV head), wherever their blocks lie.
#ifndef QUIRE_KERNELS_CPU_TILE_H_
#define QUIRE_KERNELS_CPU_TILE_H_

#include <cstddef>
#include <cstdint>

#include "kernels/backend.h"
#include "kernels/cpu/prefetch_cursor.h"

namespace quire::kernels::cpu {

// Row addresses of one tile. Entries from `tokens` up to a multiple of kPadTokens repeat the last
// row.
struct TileRows {
  static constexpr int kPadTokens = 16;

  void RepeatLast(const std::byte** row) const {
    const int padded = (tokens + kPadTokens - 1) / kPadTokens * kPadTokens;
    for (int i = tokens; i < padded; ++i) row[i] = row[tokens - 1];
  }

  const std::byte* k[kPlanTileTokens];
  const std::byte* v[kPlanTileTokens];
  // Per-token scales; only for ScaleKind::kPerToken.
  float k_scale[kPlanTileTokens];
  float v_scale[kPlanTileTokens];
  int tokens = 0;
};

// What a kernel sees of a tile.
struct KvTile {
  const std::byte* const* k = nullptr;
  const std::byte* const* v = nullptr;
  int tokens = 0;
  int64_t row_bytes = 0;
  PrefetchCursor* ahead = nullptr;
};

// Finds keys of one (sequence, layer).
class TileWalker {
 public:
  TileWalker(const KvPoolView& pool, const int32_t* ids, int32_t layer)
      : pool_(pool), ids_(ids), layer_(layer) {}

  // Addresses of keys begin..end - 1 of one KV head, at most 64.
  void Find(int32_t head, int64_t begin, int64_t end, TileRows* rows) const {
    const PagedKvLayout& layout = pool_.layout;
    const int64_t step = layout.token_stride * ElementBytes(layout.dtype);
    int count = 0;
    ForEachRun(begin, end, [&](int64_t block, int64_t slot, int64_t run) {
      const std::byte* k = RowAt(block, head, false, slot);
      const std::byte* v = RowAt(block, head, true, slot);
      if (layout.scale_kind == ScaleKind::kPerToken) {
        FindScales(block, head, slot, run, count, rows);
      }
      for (int64_t i = 0; i < run; ++i, ++count) {
        rows->k[count] = k + i * step;
        rows->v[count] = v + i * step;
      }
    });
    rows->tokens = count;
    rows->RepeatLast(rows->k);
    rows->RepeatLast(rows->v);
  }

  // Adds keys begin..end - 1 of some heads, block after block. Scattered rows are not listed.
  void ListAhead(int32_t head_begin, int32_t heads, int64_t begin, int64_t end,
                 PrefetchCursor* ahead) const {
    ahead->DropFinished();
    const PagedKvLayout& layout = pool_.layout;
    if (layout.token_stride != layout.head_dim) return;
    const int64_t side = layout.block_tokens() * layout.token_stride;
    const bool one_run =
        layout.v_offset - layout.k_offset == side && layout.head_stride == 2 * side;
    ForEachRun(begin, end, [&](int64_t block, int64_t slot, int64_t run) {
      if (one_run && run == layout.block_tokens()) {
        return ahead->Add(RowAt(block, head_begin, false, 0), 2 * heads * run * layout.row_bytes());
      }
      for (int32_t head = head_begin; head < head_begin + heads; ++head) {
        ahead->Add(RowAt(block, head, false, slot), run * layout.row_bytes());
        ahead->Add(RowAt(block, head, true, slot), run * layout.row_bytes());
      }
    });
  }

 private:
  // Calls run(block, first slot, slots) for the blocks that hold keys begin..end - 1.
  template <typename Run>
  void ForEachRun(int64_t begin, int64_t end, Run run) const {
    const int64_t tokens = pool_.layout.block_tokens();
    for (int64_t t = begin; t < end;) {
      const int64_t slot = t & (tokens - 1);
      const int64_t count = end - t < tokens - slot ? end - t : tokens - slot;
      run(ids_[t >> pool_.layout.log2_block_tokens], slot, count);
      t += count;
    }
  }

  const std::byte* RowAt(int64_t block, int32_t head, bool is_v, int64_t slot) const {
    return pool_.base + pool_.layout.RowOffset(block, layer_, head, is_v, slot) *
                            ElementBytes(pool_.layout.dtype);
  }

  void FindScales(int64_t block, int32_t head, int64_t slot, int64_t run, int count,
                  TileRows* rows) const {
    const auto* scales = reinterpret_cast<const float*>(pool_.base);
    const float* k = scales + pool_.layout.ScaleOffset(block, layer_, head, false, slot);
    const float* v = scales + pool_.layout.ScaleOffset(block, layer_, head, true, slot);
    for (int64_t i = 0; i < run; ++i) {
      rows->k_scale[count + i] = k[i];
      rows->v_scale[count + i] = v[i];
    }
  }

  const KvPoolView& pool_;
  const int32_t* ids_;
  int32_t layer_;
};

}  // namespace quire::kernels::cpu

#endif  // QUIRE_KERNELS_CPU_TILE_H_
