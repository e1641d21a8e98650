#include "kernels/kv_layout.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string>

#include "kernels/hash.h"
#include "kernels/layout_check.h"

namespace quire::kernels {
namespace {

using std::to_string;

constexpr std::array<int, 6> kHeadDims = {64, 80, 96, 128, 192, 256};

int64_t RoundUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

bool HasPerTokenScales(ScaleKind kind) { return kind == ScaleKind::kPerToken; }

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
  if (Status s = CheckLayoutShape(layout); !s.ok()) return s;
  if (Status s = CheckScaleKind(layout); !s.ok()) return s;
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
