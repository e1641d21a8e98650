#include "cache_service/engine/engine_core.h"

#include <algorithm>
#include <bit>

namespace quire {

EngineCore::EngineCore(const EngineOptions& options, const Clock& clock, const EngineSeams& seams)
    : options_(options),
      clock_(clock),
      seams_(seams),
      block_shift_(static_cast<uint32_t>(std::countr_zero(options.block_tokens))),
      groups_(options.groups, options.block_tokens),
      pool_(options.block_count, groups_.count(), groups_.count() == 1 && !groups_.has_windows,
            &journal_, this),
      tree_(options.block_count, options.block_tokens, groups_.count(), &journal_,
            options.hash_seed),
      windows_(groups_, &pool_, tree_, &journal_),
      start_(clock.Now()),
      now_(start_),
      checks_(seams.contents != nullptr ? options.block_count : 0) {
  // Slot 0 stands for "no worker".
  workers_.emplace_back();
}

}  // namespace quire
