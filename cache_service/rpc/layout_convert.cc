#include "cache_service/rpc/layout_convert.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cache_service/base/error.h"
#include "cache_service/rpc/proto_convert.h"

namespace quire {
namespace {

constexpr int kMaxLayers = 1024;

absl::Status TooMany(const char* field, int given) {
  return ToStatus(InvalidArgument(field, "too many", {{"given", given}, {"limit", kMaxLayers}}));
}

absl::StatusOr<std::optional<kernels::DType>> DtypeOf(const v1::ModelLayout& layout) {
  switch (layout.dtype()) {
    case v1::DTYPE_UNSPECIFIED:
      if (layout.kv_heads() == 0 && layout.head_dim() == 0) return std::nullopt;
      break;
    case v1::DTYPE_FP32:
      return kernels::DType::kF32;
    case v1::DTYPE_FP16:
      return kernels::DType::kF16;
    case v1::DTYPE_BF16:
      return kernels::DType::kBF16;
    case v1::DTYPE_FP8_E4M3:
      return kernels::DType::kE4M3;
    case v1::DTYPE_INT8:
      return kernels::DType::kI8;
    default:
      break;
  }
  return ToStatus(InvalidArgument("layout.dtype", "not a dtype of this server",
                                  {{"given", static_cast<int>(layout.dtype())}}));
}

}  // namespace

absl::StatusOr<ModelShape> FromProto(const v1::ModelLayout& layout, uint32_t default_block_tokens) {
  if (layout.layer_windows_size() > kMaxLayers) {
    return TooMany("layout.layer_windows", layout.layer_windows_size());
  }
  if (layout.groups_size() > kMaxLayers) return TooMany("layout.groups", layout.groups_size());
  const absl::StatusOr<std::optional<kernels::DType>> dtype = DtypeOf(layout);
  if (!dtype.ok()) return dtype.status();
  ModelShape shape;
  shape.dtype = *dtype;
  shape.kv_heads = layout.kv_heads();
  shape.head_dim = layout.head_dim();
  shape.layer_windows.assign(layout.layer_windows().begin(), layout.layer_windows().end());
  shape.block_tokens = layout.block_tokens() == 0 ? default_block_tokens : layout.block_tokens();
  for (int i = 0; i < layout.groups_size(); ++i) {
    absl::StatusOr<GroupSpec> group =
        FromProto(layout.groups(i), absl::StrCat("layout.groups[", i, "]"));
    if (!group.ok()) return group.status();
    shape.groups.push_back(*std::move(group));
  }
  return shape;
}

}  // namespace quire
