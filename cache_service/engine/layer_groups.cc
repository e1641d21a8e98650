#include "cache_service/engine/layer_groups.h"

#include <algorithm>
#include <map>

#include "cache_service/base/error.h"

namespace quire {
namespace {

constexpr size_t kMaxLayers = 1024;
// Padding may take at most one part in this many: more groups cost tables, padding costs memory.
constexpr size_t kPaddingShare = 16;

using LayersByWindow = std::map<uint32_t, std::vector<uint32_t>>;

uint64_t DivideUp(uint64_t value, uint64_t divisor) { return (value + divisor - 1) / divisor; }

size_t GroupCount(const LayersByWindow& by_window, size_t group_size) {
  size_t count = 0;
  for (const auto& [window, layers] : by_window) count += DivideUp(layers.size(), group_size);
  return count;
}

size_t ChooseGroupSize(const LayersByWindow& by_window, size_t layer_count) {
  size_t size = 0;
  for (const auto& [window, layers] : by_window) size = std::max(size, layers.size());
  while ((GroupCount(by_window, size) * size - layer_count) * kPaddingShare > layer_count) --size;
  // As few groups with smaller blocks mean less padding.
  const size_t groups = GroupCount(by_window, size);
  while (size > 1 && GroupCount(by_window, size - 1) == groups) --size;
  return size;
}

void AppendGroups(uint32_t window, std::span<const uint32_t> layers, GroupPlan& plan) {
  for (size_t first = 0; first < layers.size(); first += plan.layers_per_block) {
    const size_t count = std::min<size_t>(plan.layers_per_block, layers.size() - first);
    const auto part = layers.subspan(first, count);
    plan.groups.push_back({window, {part.begin(), part.end()}});
    plan.padding_layers.push_back(static_cast<uint32_t>(plan.layers_per_block - count));
  }
}

}  // namespace

absl::StatusOr<GroupPlan> PlanGroups(std::span<const uint32_t> layer_windows) {
  if (layer_windows.empty() || layer_windows.size() > kMaxLayers) {
    return ToStatus(InvalidArgument("layer_windows", "needs 1 to 1024 layers",
                                    {{"given", layer_windows.size()}, {"limit", kMaxLayers}}));
  }
  // The map's order puts full attention (0) first, then rising windows.
  LayersByWindow by_window;
  for (size_t i = 0; i < layer_windows.size(); ++i) {
    by_window[layer_windows[i]].push_back(static_cast<uint32_t>(i));
  }
  GroupPlan plan;
  plan.layers_per_block = static_cast<uint32_t>(ChooseGroupSize(by_window, layer_windows.size()));
  for (const auto& [window, layers] : by_window) AppendGroups(window, layers, plan);
  return plan;
}

uint32_t FirstNeededBlock(uint32_t window_tokens, uint32_t length, uint32_t block_tokens,
                          uint32_t slack_tokens) {
  if (window_tokens == 0) return 0;
  // The next position is `length`; it sees itself and the window_tokens - 1 positions before it.
  const uint64_t behind = uint64_t{window_tokens} - 1 + slack_tokens;
  if (length <= behind) return 0;
  return static_cast<uint32_t>((length - behind) / block_tokens);
}

uint32_t LongestWindowHit(std::span<const bool> resident, uint32_t window_tokens,
                          uint32_t block_tokens) {
  // run: resident blocks directly before position h.
  uint32_t longest = 0;
  uint32_t run = 0;
  for (uint32_t h = 0; h <= resident.size(); ++h) {
    if (h > 0) run = resident[h - 1] ? run + 1 : 0;
    if (h - FirstNeededBlock(window_tokens, h * block_tokens, block_tokens) <= run) longest = h;
  }
  return longest;
}

uint64_t MostBlocksHeld(const GroupSpec& group, uint64_t tokens, uint64_t chunk_tokens,
                        uint32_t block_tokens, uint32_t slack_tokens) {
  const uint64_t all = DivideUp(tokens, block_tokens);
  if (!group.is_window()) return all;
  // Window and chunk are consecutive tokens; the worst case starts on the last slot of a block.
  const uint64_t behind = uint64_t{group.window_tokens} - 1 + slack_tokens;
  if (chunk_tokens >= tokens || behind >= tokens - chunk_tokens) return all;
  const uint64_t span = behind + chunk_tokens;
  return span == 0 ? 0 : std::min(all, DivideUp(span - 1, block_tokens) + 1);
}

}  // namespace quire
