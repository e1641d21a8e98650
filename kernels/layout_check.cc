#include "kernels/layout_check.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <utility>

namespace quire::kernels {
namespace {

using std::to_string;

constexpr int32_t kMaxLayers = 1 << 16;
constexpr int32_t kMaxHeads = 1 << 16;
constexpr int64_t kMaxStride = int64_t{1} << 56;

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
  if (l.scale_kind != ScaleKind::kPerToken) return Status::Ok();
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

// An axis of rows and of scales: how many steps, how many bytes apart.
struct SharedAxis {
  int64_t count;
  int64_t rows;
  int64_t scales;
};

struct ByteRange {
  int64_t begin;
  int64_t end;
};

bool AreApart(const ByteRange& a, const ByteRange& b) {
  return a.end <= b.begin || b.end <= a.begin;
}

std::array<SharedAxis, 4> SharedAxes(const PagedKvLayout& l, int64_t num_blocks) {
  const int64_t element = ElementBytes(l.dtype);
  const auto axis = [element](int64_t count, int64_t rows, int64_t scales) {
    return count == 1 ? SharedAxis{1, 0, 0} : SharedAxis{count, rows * element, scales * 4};
  };
  std::array<SharedAxis, 4> axes = {axis(num_blocks, l.block_stride, l.scale_block_stride),
                                    axis(l.layers, l.layer_stride, l.scale_layer_stride),
                                    axis(l.kv_heads, l.head_stride, l.scale_head_stride),
                                    axis(2, std::abs(l.v_offset - l.k_offset), l.scale_v_offset)};
  std::sort(axes.begin(), axes.end(),
            [](const SharedAxis& a, const SharedAxis& b) { return a.rows > b.rows; });
  return axes;
}

// True if no scale lies inside a row. From the outermost axis in: as long as all rows and all
// scales together meet, both must take the same steps, each wide enough for what is left of both.
// Strides that interleave them in any other way count as overlap. Both lie inside the pool.
bool ScalesAreApart(const PagedKvLayout& l, int64_t num_blocks) {
  if (l.scale_kind != ScaleKind::kPerToken) return true;
  const int64_t element = ElementBytes(l.dtype);
  const std::array<SharedAxis, 4> axes = SharedAxes(l, num_blocks);
  ByteRange rows{std::min(l.k_offset, l.v_offset) * element, 0};
  ByteRange scales{l.scale_offset * 4, 0};
  rows.end = rows.begin + ((l.block_tokens() - 1) * l.token_stride + l.head_dim) * element;
  scales.end = scales.begin + int64_t{4} * l.block_tokens();
  for (const SharedAxis& axis : axes) {
    rows.end += (axis.count - 1) * axis.rows;
    scales.end += (axis.count - 1) * axis.scales;
  }
  for (const SharedAxis& axis : axes) {
    if (AreApart(rows, scales)) return true;
    rows.end -= (axis.count - 1) * axis.rows;
    scales.end -= (axis.count - 1) * axis.scales;
    const int64_t step = std::max(rows.end, scales.end) - std::min(rows.begin, scales.begin);
    if (axis.count > 1 && (axis.rows != axis.scales || step > axis.rows)) return false;
  }
  return AreApart(rows, scales);
}

}  // namespace

Status CheckLayoutShape(const PagedKvLayout& l) {
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

Status CheckScaleKind(const PagedKvLayout& l) {
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

Status PagedKvLayout::Validate(int64_t num_blocks, int64_t pool_bytes) const {
  if (Status s = CheckLayoutShape(*this); !s.ok()) return s;
  if (Status s = CheckScaleKind(*this); !s.ok()) return s;
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
    if (block_bytes < content_bytes() || block_bytes % kMinBlockBytes != 0) {
      return Status::Invalid("block_bytes", "block_bytes is " + to_string(block_bytes) +
                                                ", must be a multiple of 256 and at least " +
                                                to_string(content_bytes()));
    }
    PagedKvLayout expected = *this;
    SetPresetStrides(expected);
    if (LayoutId(expected) != id) {
      return Status::Invalid("layout", "strides differ from those of the declared preset");
    }
  }
  if (Status s = CheckRows(*this, num_blocks, pool_bytes); !s.ok()) return s;
  if (Status s = CheckScaleRows(*this, num_blocks, pool_bytes); !s.ok()) return s;
  if (ScalesAreApart(*this, num_blocks)) return Status::Ok();
  return Status::Invalid("layout", "strides make scales overlap rows");
}

}  // namespace quire::kernels
