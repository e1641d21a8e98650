#include "cache_service/engine/retention.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace quire {
namespace {

std::string FieldName(size_t index, const char* field) {
  return absl::StrCat("retention[", index, "].", field);
}

Error ValidateRange(std::span<const RetentionRange> ranges, size_t index) {
  const RetentionRange& range = ranges[index];
  const bool last = index + 1 == ranges.size();
  if (index > 0 && range.start < ranges[index - 1].end) {
    return InvalidArgument(FieldName(index, "start"), "inside or before the range before it",
                           {{"given", range.start}, {"limit", ranges[index - 1].end}});
  }
  if (range.end <= range.start) {
    return InvalidArgument(FieldName(index, "end"), "not after the start",
                           {{"given", range.end}, {"limit", range.start}});
  }
  if (range.end == kRangeToEnd && !last) {
    return InvalidArgument(FieldName(index, "end"), "only the last range may be open");
  }
  if (range.priority > kMaxPriority) {
    return InvalidArgument(FieldName(index, "priority"), "too high",
                           {{"given", range.priority}, {"limit", uint32_t{kMaxPriority}}});
  }
  if (range.duration.has_value() && *range.duration <= Duration::zero()) {
    return InvalidArgument(FieldName(index, "duration"), "not above zero",
                           {{"given", range.duration->count()}, {"unit", "ns"}});
  }
  return {};
}

}  // namespace

Error ValidateRetention(std::span<const RetentionRange> ranges) {
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (Error error = ValidateRange(ranges, i); !error.ok()) return error;
  }
  return {};
}

std::optional<BlockRetention> RetentionOfBlock(std::span<const RetentionRange> ranges,
                                               uint32_t block_index, uint32_t block_tokens) {
  const uint64_t first_token = uint64_t{block_index} * block_tokens;
  const auto after = std::upper_bound(
      ranges.begin(), ranges.end(), first_token,
      [](uint64_t token, const RetentionRange& range) { return token < range.start; });
  if (after == ranges.begin()) return std::nullopt;
  const RetentionRange& range = *std::prev(after);
  if (range.end != kRangeToEnd && first_token >= range.end) return std::nullopt;
  return BlockRetention{static_cast<uint8_t>(range.priority), range.duration};
}

}  // namespace quire
