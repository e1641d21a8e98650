// Where every byte of a KV block lies.
//
//   LayoutParams params{.dtype = DType::kBF16, .layers = 32, .kv_heads = 8, .head_dim = 128};
//   Result<PagedKvLayout> layout = MakeLayout(params);
//   layout->RowOffset(block, layer, head, /*is_v=*/false, slot);  // in elements
//
// A layout is declared and compared by id, never guessed from shapes. All strides are int64 and in
// elements of `dtype`; scale strides are in floats. Nothing may rebuild a stride from the shape.
#ifndef QUIRE_KERNELS_KV_LAYOUT_H_
#define QUIRE_KERNELS_KV_LAYOUT_H_

#include <cstdint>
#include <type_traits>

#include "kernels/host_device.h"
#include "kernels/status.h"

namespace quire::kernels {

// Codes are stored in pool headers and checksums; never renumber.
enum class DType : uint8_t { kF32 = 1, kF16 = 2, kBF16 = 3, kE4M3 = 4, kI8 = 5 };

// How one-byte content is scaled: stored value * scale = value. Scales of kinds 1 and 2 are call
// parameters; those of kind 3 lie in the block's aux area.
enum class ScaleKind : uint8_t { kNone = 0, kPerTensor = 1, kPerHead = 2, kPerToken = 3 };

enum class LayoutPreset : uint8_t {
  kCustom = 0,      // strides are what they are
  kBlhncSplit = 1,  // [layer][kv_head][K|V][token][dim], the default
  kBlkvh = 2,       // [layer][K|V][kv_head][token][dim]
};

constexpr uint8_t kLayoutVersion = 1;
constexpr int32_t kNoBlock = -1;
constexpr int kMinBlockTokens = 2;
constexpr int kMaxBlockTokens = 256;
constexpr int kMaxHeadDim = 256;
constexpr int64_t kBlockAlignBytes = 4096;
constexpr int64_t kMinBlockBytes = 256;

// Bytes per element; 0 for a code that is no dtype.
QUIRE_HOST_DEVICE constexpr int64_t ElementBytes(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 4;
    case DType::kF16:
    case DType::kBF16:
      return 2;
    case DType::kE4M3:
    case DType::kI8:
      return 1;
  }
  return 0;
}

const char* Name(DType dtype);
// 64, 80, 96, 128, 192, 256.
bool IsSupportedHeadDim(int head_dim);

// Trivially copyable; crosses process boundaries as plain bytes.
struct PagedKvLayout {
  DType dtype = DType::kBF16;
  ScaleKind scale_kind = ScaleKind::kNone;
  LayoutPreset preset = LayoutPreset::kCustom;
  uint8_t version = kLayoutVersion;
  int32_t layers = 0;
  int32_t kv_heads = 0;
  int32_t head_dim = 0;
  int32_t log2_block_tokens = 0;
  int32_t reserved = 0;  // zero

  // Elements from the pool's base.
  int64_t block_stride = 0;
  int64_t layer_stride = 0;
  int64_t head_stride = 0;
  int64_t token_stride = 0;
  int64_t k_offset = 0;
  int64_t v_offset = 0;

  // Floats from the pool's base; meaningful for ScaleKind::kPerToken. Tokens are adjacent.
  int64_t scale_offset = 0;
  int64_t scale_block_stride = 0;
  int64_t scale_layer_stride = 0;
  int64_t scale_head_stride = 0;
  int64_t scale_v_offset = 0;

  int64_t block_bytes = 0;  // what a block takes from the pool, padding included
  uint64_t id = 0;          // LayoutId over everything above

  QUIRE_HOST_DEVICE int32_t block_tokens() const { return int32_t{1} << log2_block_tokens; }

  // Bytes of one (layer, head, K or V, token) row.
  QUIRE_HOST_DEVICE int64_t row_bytes() const { return head_dim * ElementBytes(dtype); }

  // Bytes of a block that carry content: rows, then scales. Padding excluded.
  int64_t content_bytes() const;

  // Rows of one block: layers * kv_heads * 2 * block_tokens.
  int64_t rows_per_block() const { return int64_t{2} * layers * kv_heads * block_tokens(); }

  QUIRE_HOST_DEVICE int64_t RowOffset(int64_t block, int64_t layer, int64_t head, bool is_v,
                                      int64_t slot) const {
    return block * block_stride + layer * layer_stride + head * head_stride +
           (is_v ? v_offset : k_offset) + slot * token_stride;
  }

  QUIRE_HOST_DEVICE int64_t ScaleOffset(int64_t block, int64_t layer, int64_t head, bool is_v,
                                        int64_t slot) const {
    return scale_offset + block * scale_block_stride + layer * scale_layer_stride +
           head * scale_head_stride + (is_v ? scale_v_offset : 0) + slot;
  }

  // True if all content of block b is the first content_bytes() bytes at b * block_bytes, so that
  // one copy moves it. Holds for both presets.
  bool IsOneExtent() const;

  // Checks shapes, alignment, id, that no two rows overlap, and that `num_blocks` blocks end inside
  // `pool_bytes`. The message carries the numbers.
  Status Validate(int64_t num_blocks, int64_t pool_bytes) const;
};

static_assert(std::is_trivially_copyable_v<PagedKvLayout>);

struct LayoutParams {
  DType dtype = DType::kBF16;
  int32_t layers = 0;
  int32_t kv_heads = 0;
  int32_t head_dim = 0;
  int32_t block_tokens = 16;  // power of two, 2..256
  ScaleKind scale_kind = ScaleKind::kNone;
  LayoutPreset preset = LayoutPreset::kBlhncSplit;
  // 0: content rounded up to 4096. Otherwise the size to use, as when several layer groups share a
  // pool: at least the content, a multiple of 256.
  int64_t block_bytes = 0;
};

// A validated layout with preset strides and id.
Result<PagedKvLayout> MakeLayout(const LayoutParams& params);

// Hash over every field but `id` itself. Call again after changing strides by hand.
uint64_t LayoutId(const PagedKvLayout& layout);

}  // namespace quire::kernels

#endif  // QUIRE_KERNELS_KV_LAYOUT_H_
