#include "kernels/kv_layout.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <utility>

#include "kernels/hash.h"

namespace quire::kernels {
namespace {

using std::to_string;

constexpr std::array<int, 6> kHeadDims = {64, 80, 96, 128, 192, 256};
constexpr int32_t kMaxLayers = 1 << 16;
constexpr int32_t kMaxHeads = 1 << 16;
constexpr int64_t kMaxStride = int64_t{1} << 56;

int64_t RoundUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

bool HasPerTokenScales(ScaleKind kind) { return kind == ScaleKind::kPerToken; }

Status CheckShape(const PagedKvLayout& l) {
  if (ElementBytes(l.dtype) == 0) {
    return Status::Invalid("dtype", "unknown dtype code " + to_string(static_cast<int>(l.dtype)));
  }
  if (l.layers < 1 || l.layers > kMaxLayers) {
    return Status::Invalid("layers", "layers is " + to_string(l.layers) + ", must be 1..65536");
  }
  if (l.kv_heads < 1 || l.kv_heads > kMaxHeads) {
    return Status::Invalid("kv_heads",
                           "kv_heads is " + to_string(l.kv_heads) + ", must be 1..65536");
  }
  if (!IsSupportedHeadDim(l.head_dim)) {
    return Status::Invalid("head_dim", "head_dim is " + to_string(l.head_dim) +
                                           ", must be one of 64, 80, 96, 128, 192, 256");
  }
  if (l.log2_block_tokens < 1 || l.log2_block_tokens > 8) {
    return Status::Invalid("block_tokens", "log2_block_tokens is " +
                                               to_string(l.log2_block_tokens) +
                                               ", block_tokens must be a power of two in 2..256");
  }
  return Status::Ok();
}

Status CheckScales(const PagedKvLayout& l) {
  if (static_cast<int>(l.scale_kind) > static_cast<int>(ScaleKind::kPerToken)) {
    return Status::Invalid("scale_kind",
                           "unknown scale kind " + to_string(static_cast<int>(l.scale_kind)));
  }
  if (l.scale_kind != ScaleKind::kNone && ElementBytes(l.dtype) != 1) {
    return Status::Invalid("scale_kind",
                           std::string("scales need e4m3 or int8 content, not ") + Name(l.dtype));
  }
  return Status::Ok();
}

// One dimension of an address: how many steps, how far apart.
struct Axis {
  int64_t count;
  int64_t stride;
};

// Lowest level first: each step must clear everything below it. False on overlap or overflow.
bool AxesAreDisjoint(std::array<Axis, 5> axes, int64_t run, int64_t* extent) {
  std::sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) {
    return std::pair(a.stride, a.count) < std::pair(b.stride, b.count);
  });
  int64_t covered = run;
  for (const Axis& axis : axes) {
    if (axis.count == 1) continue;
    if (axis.stride < covered) return false;
    int64_t span = 0;
    if (__builtin_mul_overflow(axis.count - 1, axis.stride, &span)) return false;
    if (__builtin_add_overflow(covered, span, &covered)) return false;
  }
  *extent = covered;
  return true;
}

Status CheckRows(const PagedKvLayout& l, int64_t num_blocks, int64_t pool_bytes) {
  const int64_t element = ElementBytes(l.dtype);
  for (int64_t stride : {l.block_stride, l.layer_stride, l.head_stride, l.token_stride}) {
    if (stride < 0 || stride > kMaxStride || stride * element % 16 != 0) {
      return Status::Invalid("layout", "stride of " + to_string(stride) +
                                           " elements does not keep rows 16-byte aligned");
    }
  }
  const int64_t first = std::min(l.k_offset, l.v_offset);
  if (first < 0 || std::max(l.k_offset, l.v_offset) > kMaxStride ||
      l.k_offset * element % 16 != 0 || l.v_offset * element % 16 != 0) {
    return Status::Invalid("layout", "k_offset " + to_string(l.k_offset) + " or v_offset " +
                                         to_string(l.v_offset) + " is negative or unaligned");
  }
  const std::array<Axis, 5> axes = {{{num_blocks, l.block_stride},
                                     {l.layers, l.layer_stride},
                                     {l.kv_heads, l.head_stride},
                                     {2, std::max(l.k_offset, l.v_offset) - first},
                                     {l.block_tokens(), l.token_stride}}};
  int64_t extent = 0;
  if (!AxesAreDisjoint(axes, l.head_dim, &extent)) {
    return Status::Invalid("layout", "strides make rows overlap or overflow");
  }
  if (extent > pool_bytes / element - first) {
    return Status::OutOfRange("pool_bytes", to_string(num_blocks) + " blocks end at element " +
                                                to_string(extent) + ", the pool has " +
                                                to_string(pool_bytes) + " bytes");
  }
  return Status::Ok();
}

Status CheckScaleRows(const PagedKvLayout& l, int64_t num_blocks, int64_t pool_bytes) {
  if (!HasPerTokenScales(l.scale_kind)) return Status::Ok();
  if (l.scale_offset < 0 || std::min({l.scale_block_stride, l.scale_layer_stride,
                                      l.scale_head_stride, l.scale_v_offset}) < 0) {
    return Status::Invalid("layout", "negative scale offset or stride");
  }
  const std::array<Axis, 5> axes = {{{num_blocks, l.scale_block_stride},
                                     {l.layers, l.scale_layer_stride},
                                     {l.kv_heads, l.scale_head_stride},
                                     {2, l.scale_v_offset},
                                     {1, 0}}};
  int64_t extent = 0;
  if (!AxesAreDisjoint(axes, l.block_tokens(), &extent)) {
    return Status::Invalid("layout", "scale strides make scales overlap or overflow");
  }
  if (extent > pool_bytes / 4 - l.scale_offset) {
    return Status::OutOfRange("pool_bytes",
                              "scales end past the pool's " + to_string(pool_bytes) + " bytes");
  }
  return Status::Ok();
}

void SetPresetStrides(PagedKvLayout& l) {
  const int64_t n = l.block_tokens();
  const int64_t d = l.head_dim;
  const bool split = l.preset == LayoutPreset::kBlhncSplit;
  l.token_stride = d;
  l.head_stride = split ? 2 * n * d : n * d;
  l.k_offset = 0;
  l.v_offset = split ? n * d : l.kv_heads * n * d;
  l.layer_stride = int64_t{2} * l.kv_heads * n * d;
  l.block_stride = l.block_bytes / ElementBytes(l.dtype);
  if (!HasPerTokenScales(l.scale_kind)) return;
  l.scale_offset = l.layers * l.layer_stride * ElementBytes(l.dtype) / 4;
  l.scale_block_stride = l.block_bytes / 4;
  l.scale_head_stride = split ? 2 * n : n;
  l.scale_v_offset = split ? n : l.kv_heads * n;
  l.scale_layer_stride = int64_t{2} * l.kv_heads * n;
}

Status ChooseBlockBytes(int64_t wanted, PagedKvLayout& l) {
  const int64_t content = l.content_bytes();
  if (wanted == 0) {
    l.block_bytes = RoundUp(content, kBlockAlignBytes);
    return Status::Ok();
  }
  if (wanted < content || wanted % kMinBlockBytes != 0) {
    return Status::Invalid("block_bytes", "block_bytes is " + to_string(wanted) +
                                              ", must be a multiple of 256 and at least " +
                                              to_string(content));
  }
  l.block_bytes = wanted;
  return Status::Ok();
}

}  // namespace

const char* Name(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "fp32";
    case DType::kF16:
      return "fp16";
    case DType::kBF16:
      return "bf16";
    case DType::kE4M3:
      return "e4m3";
    case DType::kI8:
      return "int8";
  }
  return "unknown";
}

bool IsSupportedHeadDim(int head_dim) {
  return std::find(kHeadDims.begin(), kHeadDims.end(), head_dim) != kHeadDims.end();
}

int64_t PagedKvLayout::content_bytes() const {
  const int64_t scales = HasPerTokenScales(scale_kind) ? 4 : 0;
  return rows_per_block() * (row_bytes() + scales);
}

bool PagedKvLayout::IsOneExtent() const {
  if (preset == LayoutPreset::kCustom) return false;
  return block_stride * ElementBytes(dtype) == block_bytes;
}

Status PagedKvLayout::Validate(int64_t num_blocks, int64_t pool_bytes) const {
  if (Status s = CheckShape(*this); !s.ok()) return s;
  if (Status s = CheckScales(*this); !s.ok()) return s;
  if (version != kLayoutVersion || id != LayoutId(*this)) {
    return Status::Invalid("layout", "layout version " + to_string(version) + " id " +
                                         to_string(id) + " does not match its fields, version " +
                                         to_string(kLayoutVersion) + " id " +
                                         to_string(LayoutId(*this)));
  }
  if (num_blocks < 1 || num_blocks >= (int64_t{1} << 31) - 1) {
    return Status::Invalid("num_blocks",
                           "num_blocks is " + to_string(num_blocks) + ", must be 1..2^31-2");
  }
  if (preset != LayoutPreset::kCustom) {
    if (block_bytes < content_bytes()) {
      return Status::Invalid("block_bytes", "block_bytes is " + to_string(block_bytes) +
                                                ", content needs " + to_string(content_bytes()));
    }
    PagedKvLayout expected = *this;
    SetPresetStrides(expected);
    if (LayoutId(expected) != id) {
      return Status::Invalid("layout", "strides differ from those of the declared preset");
    }
  }
  if (Status s = CheckRows(*this, num_blocks, pool_bytes); !s.ok()) return s;
  return CheckScaleRows(*this, num_blocks, pool_bytes);
}

Result<PagedKvLayout> MakeLayout(const LayoutParams& params) {
  const int32_t n = params.block_tokens;
  if (n < kMinBlockTokens || n > kMaxBlockTokens ||
      !std::has_single_bit(static_cast<uint32_t>(n))) {
    return Status::Invalid(
        "block_tokens", "block_tokens is " + to_string(n) + ", must be a power of two in 2..256");
  }
  if (params.preset != LayoutPreset::kBlhncSplit && params.preset != LayoutPreset::kBlkvh) {
    return Status::Invalid(
        "preset", "no strides are known for preset " + to_string(static_cast<int>(params.preset)));
  }
  PagedKvLayout layout;
  layout.dtype = params.dtype;
  layout.scale_kind = params.scale_kind;
  layout.preset = params.preset;
  layout.layers = params.layers;
  layout.kv_heads = params.kv_heads;
  layout.head_dim = params.head_dim;
  layout.log2_block_tokens = std::countr_zero(static_cast<uint32_t>(n));
  if (Status s = CheckShape(layout); !s.ok()) return s;
  if (Status s = CheckScales(layout); !s.ok()) return s;
  if (Status s = ChooseBlockBytes(params.block_bytes, layout); !s.ok()) return s;
  SetPresetStrides(layout);
  layout.id = LayoutId(layout);
  return layout;
}

uint64_t LayoutId(const PagedKvLayout& l) {
  uint64_t hash = 0;
  const auto add = [&hash](auto value) {
    hash = Mix64(hash + kGolden + static_cast<uint64_t>(value));
  };
  add(l.version);
  add(l.preset);
  add(l.dtype);
  add(l.scale_kind);
  for (int32_t v : {l.layers, l.kv_heads, l.head_dim, l.log2_block_tokens, l.reserved}) add(v);
  for (int64_t v : {l.block_stride, l.layer_stride, l.head_stride, l.token_stride, l.k_offset,
                    l.v_offset, l.scale_offset, l.scale_block_stride, l.scale_layer_stride,
                    l.scale_head_stride, l.scale_v_offset, l.block_bytes}) {
    add(v);
  }
  return hash;
}

}  // namespace quire::kernels
