#include "kernels/cpu/copy.h"

#include <cstring>
#include <unordered_set>

namespace quire::kernels::cpu {
namespace {

// Calls run(layer, head, is_v) in dense order.
template <typename Run>
void ForEachRun(const PagedKvLayout& layout, Run run) {
  for (int64_t layer = 0; layer < layout.layers; ++layer) {
    for (int64_t head = 0; head < layout.kv_heads; ++head) {
      run(layer, head, false);
      run(layer, head, true);
    }
  }
}

std::byte* RowAt(const KvPoolView& pool, int64_t block, int64_t layer, int64_t head, bool is_v) {
  return pool.base +
         pool.layout.RowOffset(block, layer, head, is_v, 0) * ElementBytes(pool.layout.dtype);
}

std::byte* ScaleAt(const KvPoolView& pool, int64_t block, int64_t layer, int64_t head, bool is_v) {
  return pool.base + pool.layout.ScaleOffset(block, layer, head, is_v, 0) * 4;
}

bool HasScales(const PagedKvLayout& layout) { return layout.scale_kind == ScaleKind::kPerToken; }

// `tokens` rows, each side with its own distance between them.
void CopyRows(std::byte* to, int64_t to_step, const std::byte* from, int64_t from_step,
              int64_t tokens, int64_t row_bytes) {
  if (to_step == row_bytes && from_step == row_bytes) {
    std::memcpy(to, from, static_cast<size_t>(tokens * row_bytes));
    return;
  }
  for (int64_t t = 0; t < tokens; ++t) {
    std::memcpy(to + t * to_step, from + t * from_step, static_cast<size_t>(row_bytes));
  }
}

int64_t TokenStep(const PagedKvLayout& layout) {
  return layout.token_stride * ElementBytes(layout.dtype);
}

// True if a block's content in the pool is its dense form.
bool IsDense(const PagedKvLayout& layout) {
  return layout.preset == LayoutPreset::kBlhncSplit && layout.IsOneExtent();
}

std::byte* BlockAt(const KvPoolView& pool, int64_t block) {
  return pool.base + block * pool.layout.block_bytes;
}

}  // namespace

void CopyBlock(const KvPoolView& from, int32_t source, const KvPoolView& to, int32_t destination,
               int64_t tokens) {
  const PagedKvLayout& a = from.layout;
  const PagedKvLayout& b = to.layout;
  const bool same_order = a.preset == b.preset && a.IsOneExtent() && b.IsOneExtent();
  if (same_order && tokens == a.block_tokens()) {
    std::memcpy(BlockAt(to, destination), BlockAt(from, source),
                static_cast<size_t>(a.content_bytes()));
    return;
  }
  ForEachRun(a, [&](int64_t layer, int64_t head, bool is_v) {
    CopyRows(RowAt(to, destination, layer, head, is_v), TokenStep(b),
             RowAt(from, source, layer, head, is_v), TokenStep(a), tokens, a.row_bytes());
    if (!HasScales(a)) return;
    std::memcpy(ScaleAt(to, destination, layer, head, is_v),
                ScaleAt(from, source, layer, head, is_v), static_cast<size_t>(tokens) * 4);
  });
}

void GatherBlock(const KvPoolView& pool, int32_t block, std::byte* destination) {
  const PagedKvLayout& layout = pool.layout;
  if (IsDense(layout)) {
    std::memcpy(destination, BlockAt(pool, block), static_cast<size_t>(layout.content_bytes()));
    return;
  }
  const int64_t tokens = layout.block_tokens();
  std::byte* scales = destination + layout.rows_per_block() * layout.row_bytes();
  ForEachRun(layout, [&](int64_t layer, int64_t head, bool is_v) {
    CopyRows(destination, layout.row_bytes(), RowAt(pool, block, layer, head, is_v),
             TokenStep(layout), tokens, layout.row_bytes());
    destination += tokens * layout.row_bytes();
    if (!HasScales(layout)) return;
    std::memcpy(scales, ScaleAt(pool, block, layer, head, is_v), static_cast<size_t>(tokens) * 4);
    scales += tokens * 4;
  });
}

void ScatterBlock(const KvPoolView& pool, int32_t block, const std::byte* source) {
  const PagedKvLayout& layout = pool.layout;
  if (IsDense(layout)) {
    std::memcpy(BlockAt(pool, block), source, static_cast<size_t>(layout.content_bytes()));
    return;
  }
  const int64_t tokens = layout.block_tokens();
  const std::byte* scales = source + layout.rows_per_block() * layout.row_bytes();
  ForEachRun(layout, [&](int64_t layer, int64_t head, bool is_v) {
    CopyRows(RowAt(pool, block, layer, head, is_v), TokenStep(layout), source, layout.row_bytes(),
             tokens, layout.row_bytes());
    source += tokens * layout.row_bytes();
    if (!HasScales(layout)) return;
    std::memcpy(ScaleAt(pool, block, layer, head, is_v), scales, static_cast<size_t>(tokens) * 4);
    scales += tokens * 4;
  });
}

std::vector<size_t> CutIntoWaves(std::span<const CopyOrder> orders) {
  std::vector<size_t> cuts = {0};
  std::unordered_set<int32_t> read;
  std::unordered_set<int32_t> written;
  for (size_t i = 0; i < orders.size(); ++i) {
    const CopyOrder& order = orders[i];
    const bool conflict = written.count(order.source) > 0 || written.count(order.destination) > 0 ||
                          read.count(order.destination) > 0;
    if (conflict) {
      cuts.push_back(i);
      read.clear();
      written.clear();
    }
    read.insert(order.source);
    written.insert(order.destination);
  }
  cuts.push_back(orders.size());
  return cuts;
}

}  // namespace quire::kernels::cpu
