#include "cache_service/engine/engine_options.h"

#include <bit>

#include "absl/strings/str_cat.h"

namespace quire {
namespace {

constexpr uint64_t kMostBlocks = 0x7FFFFFFE;
constexpr uint64_t kMostTokens = 0x7FFFFFFF;
constexpr uint64_t kMostLeases = 65000;
// Waiters keep their turn for two intervals.
constexpr Duration kLongestRetry = std::chrono::hours(1);

struct Range {
  const char* option;
  uint64_t given;
  uint64_t least;
  uint64_t most;
};

Error CheckRange(const Range& range) {
  if (range.given >= range.least && range.given <= range.most) return {};
  return InvalidArgument(
      range.option, absl::StrCat(range.given, " is not from ", range.least, " to ", range.most),
      {{"given", range.given}, {"least", range.least}, {"limit", range.most}});
}

Error CheckRanges(const EngineOptions& options) {
  const Range ranges[] = {
      {"block_count", options.block_count, 1, kMostBlocks},
      {"block_tokens", options.block_tokens, 2, 1024},
      {"groups", options.groups.size(), 1, 255},
      {"max_sequence_tokens", options.max_sequence_tokens, 1, kMostTokens},
      {"max_steps_in_flight", options.max_steps_in_flight, 1, 65536},
      {"max_operations_per_step", options.max_operations_per_step, 1, uint64_t{1} << 24},
      {"max_sequences_per_worker", options.max_sequences_per_worker, 1, kMostTokens},
      {"max_leases", options.max_leases, 1, kMostLeases}};
  for (const Range& range : ranges) {
    if (Error error = CheckRange(range); !error.ok()) return error;
  }
  return {};
}

std::string InSeconds(Duration duration) {
  return absl::StrCat(std::chrono::duration<double>(duration).count(), " s");
}

Error BadDuration(const char* option, Duration given, const char* problem) {
  return InvalidArgument(option, absl::StrCat(InSeconds(given), " is ", problem),
                         {{"given", InSeconds(given)}});
}

Error TooLong(const char* option, Duration given, const char* than, Duration limit) {
  return InvalidArgument(
      option, absl::StrCat(InSeconds(given), " is longer than ", than, ", ", InSeconds(limit)),
      {{"given", InSeconds(given)}, {"limit", InSeconds(limit)}});
}

Error CheckDurations(const EngineOptions& options) {
  const std::pair<const char*, Duration> positive[] = {{"max_lease", options.max_lease},
                                                       {"default_lease", options.default_lease},
                                                       {"retry_interval", options.retry_interval}};
  for (const auto& [option, given] : positive) {
    if (given <= Duration::zero()) return BadDuration(option, given, "not positive");
  }
  // Below this a lease ends before its holder can say anything.
  constexpr Duration kShortestLease = std::chrono::milliseconds(1);
  for (const auto& [option, given] : {positive[0], positive[1]}) {
    if (given < kShortestLease) return BadDuration(option, given, "shorter than a millisecond");
  }
  const std::pair<const char*, Duration> not_negative[] = {
      {"stream_grace", options.stream_grace}, {"fence_timeout", options.fence_timeout}};
  for (const auto& [option, given] : not_negative) {
    if (given < Duration::zero()) return BadDuration(option, given, "negative");
  }
  if (options.retry_interval > kLongestRetry) {
    return TooLong("retry_interval", options.retry_interval, "an hour", kLongestRetry);
  }
  if (options.default_lease <= options.max_lease) return {};
  return TooLong("default_lease", options.default_lease, "max_lease", options.max_lease);
}

Error CheckRest(const EngineOptions& options) {
  if (!std::has_single_bit(options.block_tokens)) {
    return InvalidArgument("block_tokens",
                           absl::StrCat(options.block_tokens, " is not a power of two"),
                           {{"given", options.block_tokens}});
  }
  if (options.watermark >= 0.0 && options.watermark < 1.0) return {};
  const std::string given = absl::StrCat(options.watermark);
  return InvalidArgument("watermark", absl::StrCat(given, " is not at least 0 and below 1"),
                         {{"given", given}, {"limit", 1}});
}

Error CheckHoldsOneSequence(const EngineOptions& options) {
  const uint64_t needed = BlocksOfLongestSequence(options);
  if (needed <= options.block_count) return {};
  return InvalidArgument(
      "block_count",
      absl::StrCat("a pool of ", options.block_count, " blocks cannot hold one sequence of ",
                   options.max_sequence_tokens, " tokens, which needs ", needed),
      {{"given", options.block_count},
       {"needed", needed},
       {"max_sequence_tokens", options.max_sequence_tokens}});
}

}  // namespace

uint64_t BlocksOfLongestSequence(const EngineOptions& options) {
  uint64_t blocks = 0;
  for (const GroupSpec& group : options.groups) {
    blocks += MostBlocksHeld(group, options.max_sequence_tokens, options.block_tokens,
                             options.block_tokens, options.window_slack_tokens);
  }
  return blocks;
}

Error CheckOptions(const EngineOptions& options) {
  for (const auto check : {CheckRanges, CheckRest, CheckDurations, CheckHoldsOneSequence}) {
    if (Error error = check(options); !error.ok()) return error;
  }
  return {};
}

}  // namespace quire
