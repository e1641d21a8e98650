#include "worker/runtime/scheduler_options.h"

#include "absl/strings/str_cat.h"

namespace quire::runtime {
namespace {

struct Range {
  const char* name;
  uint32_t value;
  uint32_t least;
  uint32_t most;
};

}  // namespace

absl::Status Validate(const SchedulerOptions& options) {
  // So that slots ahead and rows of a launch stay small numbers.
  const Range ranges[] = {{"max_sequences", options.max_sequences, 1, 65536},
                          {"batch_tokens", options.max_batch_tokens, 1, 1u << 20},
                          {"chunk_tokens", options.chunk_tokens, 1, 1u << 20},
                          {"steps_in_flight", options.steps_in_flight, 1, 65536},
                          {"lag", options.lag, 0, 1024},
                          {"drafts", options.drafts, 0, 1024}};
  for (const auto& [name, value, least, most] : ranges) {
    if (value >= least && value <= most) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(name, " ", value, ": not from ", least, " to ", most));
  }
  if (options.max_batch_tokens > options.drafts) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("batch_tokens ", options.max_batch_tokens,
                                                 ": not above drafts, ", options.drafts));
}

}  // namespace quire::runtime
