// What a CacheEngine is made of. Every value is checked by CacheEngine::Create, which names the
// option and the numbers when it refuses.
#ifndef QUIRE_CACHE_SERVICE_ENGINE_ENGINE_OPTIONS_H_
#define QUIRE_CACHE_SERVICE_ENGINE_ENGINE_OPTIONS_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "cache_service/base/clock.h"
#include "cache_service/base/error.h"
#include "cache_service/engine/layer_groups.h"
#include "cache_service/engine/types.h"

namespace quire {

enum class PoolMemoryKind : uint8_t { kShared, kWorker };

struct EngineOptions {
  std::string pool_name = "default";
  Epoch epoch = 1;
  uint32_t block_count = 0;
  // A power of two, 2..1024. Small: finer sharing, longer tables. Large: more internal waste.
  uint32_t block_tokens = 16;
  // At least one. Every group needs a block of its own per block_tokens tokens.
  std::vector<GroupSpec> groups = {GroupSpec{}};
  uint64_t block_bytes = 0;
  PoolMemoryKind memory = PoolMemoryKind::kShared;
  // Part of every namespace; two pools of different layout never share content.
  std::string layout_tag;
  // Of the tables in the prefix tree; secret, or prompts can be made that slow it down. Equal
  // seeds, equal decisions.
  uint64_t hash_seed = 0;

  // Longest sequence; a pool that cannot hold one such sequence is refused.
  uint32_t max_sequence_tokens = 131072;
  // Tokens that a window block outlives its window; too low: truncate loses windows (WINDOW_LOST).
  uint32_t window_slack_tokens = 0;
  // Share of the pool that a begin must leave while others run. 0: admission up to the last block;
  // high: fewer preemptions, longer queues.
  double watermark = 0.0;

  uint32_t max_steps_in_flight = 8;
  // Each column entry counts as one.
  uint32_t max_operations_per_step = 4096;
  uint32_t max_sequences_per_worker = 65536;
  uint64_t max_table_entries_per_worker = uint64_t{1} << 28;
  uint32_t max_pins = 4096;
  uint32_t max_leases = 1024;
  uint64_t max_answer_entries = uint64_t{1} << 21;

  Duration default_lease = std::chrono::seconds(30);
  Duration max_lease = std::chrono::minutes(10);
  // A lease whose stream broke ends after this, unless a call comes.
  Duration stream_grace = std::chrono::seconds(5);
  // Suggested wait after POOL_EXHAUSTED; a waiter silent for two intervals loses its turn.
  Duration retry_interval = std::chrono::milliseconds(20);
  // A quarantine older than this raises the alarm metric.
  Duration fence_timeout = std::chrono::seconds(10);
  // How often a quarantine asks whether its worker is gone.
  Duration quarantine_poll = std::chrono::milliseconds(100);
  // How often RunMaintenance wants to be called even if nothing is due; a gap longer than this plus
  // pause_threshold counts as a pause. 0: pauses are not looked for.
  Duration heartbeat{};
  // A pause of the whole process longer than this moves all lease deadlines.
  Duration pause_threshold = std::chrono::seconds(1);
  // Checksums computed or compared per RunMaintenance, outside the lock. High: more memory reads.
  uint32_t content_checks_per_run = 64;
  // One of this many hit blocks is compared with its checksum; 0: none.
  uint32_t content_sample = 0;
  Duration max_pin = std::chrono::hours(24);
};

// Blocks that one sequence of max_sequence_tokens can hold at once, over all groups.
uint64_t BlocksOfLongestSequence(const EngineOptions& options);

// What CacheEngine::Create would refuse: INVALID_ARGUMENT naming the option and the numbers.
Error CheckOptions(const EngineOptions& options);

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_ENGINE_ENGINE_OPTIONS_H_
