#include "cache_service/engine/engine_core.h"

#include <algorithm>
#include <bit>

namespace quire {

EngineCore::EngineCore(const EngineOptions& options, const Clock& clock, const EngineSeams& seams)
    : options_(options),
      clock_(clock),
      seams_(seams),
      block_shift_(static_cast<uint32_t>(std::countr_zero(options.block_tokens))),
      pool_(options.block_count, static_cast<uint32_t>(options.groups.size()),
            options.groups.size() == 1 && !options.groups[0].is_window(), &journal_, this),
      tree_(options.block_count, options.block_tokens, static_cast<uint32_t>(options.groups.size()),
            &journal_, options.hash_seed),
      start_(clock.Now()),
      now_(start_),
      checks_(seams.contents != nullptr ? options.block_count : 0) {
  const auto is_window = [](const GroupSpec& group) { return group.is_window(); };
  has_windows_ = std::any_of(options.groups.begin(), options.groups.end(), is_window);
  only_windows_ = std::all_of(options.groups.begin(), options.groups.end(), is_window);
  while (!only_windows_ && IsWindow(full_group_)) ++full_group_;
  // Slot 0 stands for "no worker".
  workers_.emplace_back();
}

}  // namespace quire
