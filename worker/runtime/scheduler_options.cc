#include "worker/runtime/scheduler_options.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace quire::runtime {

absl::Status Validate(const SchedulerOptions& options) {
  for (const auto& [name, value] : {std::pair("max_sequences", options.max_sequences),
                                    std::pair("chunk_tokens", options.chunk_tokens),
                                    std::pair("steps_in_flight", options.steps_in_flight)}) {
    if (value == 0) return absl::InvalidArgumentError(absl::StrCat(name, " 0: not positive"));
  }
  if (options.max_batch_tokens > options.drafts) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("batch_tokens ", options.max_batch_tokens,
                                                 ": not above drafts, ", options.drafts));
}

}  // namespace quire::runtime
