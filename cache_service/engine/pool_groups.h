// The layer groups of one pool, and what follows from them.
#ifndef QUIRE_CACHE_SERVICE_ENGINE_POOL_GROUPS_H_
#define QUIRE_CACHE_SERVICE_ENGINE_POOL_GROUPS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cache_service/engine/layer_groups.h"

namespace quire {

struct PoolGroups {
  // At least one group.
  PoolGroups(const std::vector<GroupSpec>& groups, uint32_t tokens_per_block)
      : specs(groups), block_tokens(tokens_per_block) {
    const auto is_window = [](const GroupSpec& group) { return group.is_window(); };
    has_windows = std::any_of(specs.begin(), specs.end(), is_window);
    only_windows = std::all_of(specs.begin(), specs.end(), is_window);
    while (!only_windows && IsWindow(full)) ++full;
  }

  uint32_t count() const { return static_cast<uint32_t>(specs.size()); }

  bool IsWindow(uint32_t group) const { return specs[group].is_window(); }

  // Index of the first block that the group's window behind `length` touches.
  uint32_t FirstNeeded(uint32_t group, uint32_t length, uint32_t slack_tokens = 0) const {
    return FirstNeededBlock(specs[group].window_tokens, length, block_tokens, slack_tokens);
  }

  std::vector<GroupSpec> specs;
  uint32_t block_tokens;
  bool has_windows = false;
  // No group sees everything: any block may be missing in the middle of a path.
  bool only_windows = false;
  // First group that sees everything; stands for all such groups of a position.
  uint32_t full = 0;
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_ENGINE_POOL_GROUPS_H_
