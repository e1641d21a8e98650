// Retention: token ranges to block priorities and durations. Pure functions (TensorRT-LLM's public
// retention interface is the model: a block takes the range that covers its first token).
#ifndef QUIRE_CACHE_SERVICE_ENGINE_RETENTION_H_
#define QUIRE_CACHE_SERVICE_ENGINE_RETENTION_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cache_service/base/clock.h"
#include "cache_service/base/error.h"

namespace quire {

inline constexpr uint8_t kDefaultPriority = 35;
inline constexpr uint8_t kMaxPriority = 100;
inline constexpr uint32_t kRangeToEnd = 0xFFFFFFFFu;

struct RetentionRange {
  uint32_t start = 0;
  // kRangeToEnd: open, only allowed in the last range.
  uint32_t end = kRangeToEnd;
  uint32_t priority = kDefaultPriority;
  // Absent: for ever. Counts from the last use, inclusive end.
  std::optional<Duration> duration;

  friend bool operator==(const RetentionRange&, const RetentionRange&) = default;
};

struct BlockRetention {
  uint8_t priority = kDefaultPriority;
  std::optional<Duration> duration;

  friend bool operator==(const BlockRetention&, const BlockRetention&) = default;
};

// Ranges must be in order, not empty, not overlapping, open only at the end, priority 0..100,
// duration > 0. The error names "retention[i].<field>" and the limit.
Error ValidateRetention(std::span<const RetentionRange> ranges);

// The range that covers the first token of block `block_index`, or nothing.
std::optional<BlockRetention> RetentionOfBlock(std::span<const RetentionRange> ranges,
                                               uint32_t block_index, uint32_t block_tokens);

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_ENGINE_RETENTION_H_
