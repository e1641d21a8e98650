#include "cache_service/memory/pool_layout.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cache_service/base/error.h"

namespace quire {
namespace {

constexpr size_t kMaxLayers = 1024;
constexpr size_t kMaxGroups = 255;

absl::Status CheckGivenGroups(const std::vector<GroupSpec>& groups, bool needs_layers) {
  absl::flat_hash_set<uint32_t> seen;
  for (size_t i = 0; i < groups.size(); ++i) {
    const std::string field = absl::StrCat("layout.groups[", i, "].layers");
    if (needs_layers && groups[i].layers.empty()) {
      return ToStatus(InvalidArgument(field, "a group of a pool with memory needs layers"));
    }
    for (const uint32_t layer : groups[i].layers) {
      if (layer >= kMaxLayers) {
        return ToStatus(InvalidArgument(field, "layer out of range",
                                        {{"given", layer}, {"limit", kMaxLayers - 1}}));
      }
      if (!seen.insert(layer).second) {
        return ToStatus(InvalidArgument(field, "layer in two groups", {{"layer", layer}}));
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<GroupSpec>> GroupsOf(const ModelShape& shape) {
  if (!shape.groups.empty() && !shape.layer_windows.empty()) {
    return ToStatus(InvalidArgument("layout.groups", "give groups or layer_windows, not both"));
  }
  if (!shape.layer_windows.empty()) {
    absl::StatusOr<GroupPlan> plan = PlanGroups(shape.layer_windows);
    if (!plan.ok()) return plan.status();
    return std::move(plan->groups);
  }
  if (!shape.groups.empty()) {
    const absl::Status status = CheckGivenGroups(shape.groups, shape.dtype.has_value());
    if (!status.ok()) return status;
    return shape.groups;
  }
  if (shape.dtype.has_value()) {
    return ToStatus(InvalidArgument("layout.layer_windows", "no layers"));
  }
  return std::vector<GroupSpec>{GroupSpec{}};
}

// What the kernels refuse, with the number that was given where it is one of the shape's.
absl::Status FromKernels(const kernels::Status& status, const ModelShape& shape) {
  const std::pair<const char*, uint32_t> numbers[] = {{"kv_heads", shape.kv_heads},
                                                      {"head_dim", shape.head_dim},
                                                      {"block_tokens", shape.block_tokens}};
  std::vector<ErrorDetail> given;
  for (const auto& [name, value] : numbers) {
    if (status.argument() == name) given.emplace_back("given", value);
  }
  return ToStatus(InvalidArgument(absl::StrCat("layout.", status.argument()), status.message(),
                                  std::move(given)));
}

kernels::LayoutParams ParamsOf(const ModelShape& shape, size_t layers) {
  return {.dtype = *shape.dtype,
          .layers = static_cast<int32_t>(layers),
          .kv_heads = static_cast<int32_t>(shape.kv_heads),
          .head_dim = static_cast<int32_t>(shape.head_dim),
          .block_tokens = static_cast<int32_t>(shape.block_tokens)};
}

absl::Status LayOutGroups(PoolLayout& layout) {
  size_t most_layers = 0;
  for (const GroupSpec& group : layout.groups) {
    most_layers = std::max(most_layers, group.layers.size());
  }
  const auto widest = kernels::MakeLayout(ParamsOf(layout.shape, most_layers));
  if (!widest.ok()) return FromKernels(widest.status(), layout.shape);
  layout.block_bytes = static_cast<uint64_t>(widest->block_bytes);
  layout.layout_id = widest->id;
  for (const GroupSpec& group : layout.groups) {
    kernels::LayoutParams params = ParamsOf(layout.shape, group.layers.size());
    params.block_bytes = widest->block_bytes;
    const auto group_layout = kernels::MakeLayout(params);
    if (!group_layout.ok()) return FromKernels(group_layout.status(), layout.shape);
    layout.group_layouts.push_back(*group_layout);
  }
  return absl::OkStatus();
}

// Values that the layout could not even hold as numbers; the rest is MakeLayout's.
absl::Status CheckRanges(const ModelShape& shape) {
  constexpr uint32_t kMost = 65536;
  const std::pair<const char*, uint32_t> fields[] = {{"layout.kv_heads", shape.kv_heads},
                                                     {"layout.head_dim", shape.head_dim},
                                                     {"layout.block_tokens", shape.block_tokens}};
  for (const auto& [field, value] : fields) {
    if (value > kMost) {
      return ToStatus(InvalidArgument(field, "too large", {{"given", value}, {"limit", kMost}}));
    }
  }
  return absl::OkStatus();
}

}  // namespace

uint64_t PoolLayout::PaddingBytes(size_t group) const {
  if (group >= group_layouts.size()) return 0;
  return block_bytes - static_cast<uint64_t>(group_layouts[group].content_bytes());
}

std::string PoolLayout::Describe() const {
  std::string text = shape.dtype.has_value()
                         ? absl::StrCat(kernels::Name(*shape.dtype), ", ", shape.kv_heads,
                                        " kv heads of ", shape.head_dim, ", ")
                         : std::string("no bytes, ");
  absl::StrAppend(&text, "blocks of ", shape.block_tokens, " tokens, groups");
  for (const GroupSpec& group : groups) {
    absl::StrAppend(&text, " [window ", group.window_tokens, " layers ",
                    absl::StrJoin(group.layers, " "), "]");
  }
  absl::StrAppend(&text, ", layout id ", absl::Hex(layout_id, absl::kZeroPad16));
  return text;
}

absl::StatusOr<PoolLayout> MakePoolLayout(const ModelShape& shape) {
  if (const absl::Status status = CheckRanges(shape); !status.ok()) return status;
  absl::StatusOr<std::vector<GroupSpec>> groups = GroupsOf(shape);
  if (!groups.ok()) return groups.status();
  if (groups->size() > kMaxGroups) {
    return ToStatus(InvalidArgument(shape.groups.empty() ? "layout.layer_windows" : "layout.groups",
                                    "too many layer groups",
                                    {{"given", groups->size()}, {"limit", kMaxGroups}}));
  }
  PoolLayout layout;
  layout.shape = shape;
  layout.groups = *std::move(groups);
  if (shape.dtype.has_value()) {
    if (const absl::Status status = LayOutGroups(layout); !status.ok()) return status;
  }
  return layout;
}

bool SameLayout(const PoolLayout& a, const PoolLayout& b) { return a.Describe() == b.Describe(); }

}  // namespace quire
