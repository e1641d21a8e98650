// Plain snapshot of an engine's counters and state counts: metrics, administrators and tests read
// the same numbers.
#ifndef QUIRE_CACHE_SERVICE_ENGINE_ENGINE_STATS_H_
#define QUIRE_CACHE_SERVICE_ENGINE_ENGINE_STATS_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cache_service/base/clock.h"
#include "cache_service/engine/admin_calls.h"

namespace quire {

// Blocks by state; the states sum to the pool.
struct BlockStateCounts {
  uint64_t free = 0;
  uint64_t fenced = 0;
  uint64_t quarantined = 0;
  uint64_t filling = 0;
  uint64_t pending = 0;
  uint64_t referenced = 0;
  uint64_t idle = 0;
  uint64_t bad = 0;
  // Of idle (or fenced): no hit can use them any more.
  uint64_t dead = 0;

  uint64_t Sum() const {
    return free + fenced + quarantined + filling + pending + referenced + idle + bad;
  }

  friend bool operator==(const BlockStateCounts&, const BlockStateCounts&) = default;
};

// Exponential histogram of nanoseconds or plain numbers: bucket i counts values < 2^i, the last
// all.
struct PowerHistogram {
  static constexpr int kBuckets = 48;
  std::array<uint64_t, kBuckets> counts{};
  uint64_t count = 0;
  double sum = 0;

  void Add(uint64_t value, uint64_t times = 1);

  friend bool operator==(const PowerHistogram&, const PowerHistogram&) = default;
};

enum class EvictionReason : uint8_t { kCapacity, kDead, kRequested, kFlushed, kDropped, kBad };
inline constexpr int kEvictionReasons = 6;
// Bands of ten priorities: 0-9, 10-19, ... 90-99, 100.
inline constexpr int kPriorityBands = 11;

// Only rise.
struct EngineCounters {
  uint64_t prefix_tokens_queried = 0;
  uint64_t prefix_tokens_hit_whole = 0;
  uint64_t prefix_tokens_hit_partial = 0;
  uint64_t begins = 0;
  uint64_t finishes = 0;
  uint64_t forks = 0;
  uint64_t steps = 0;
  uint64_t steps_repeated = 0;
  uint64_t steps_refused = 0;
  uint64_t operations = 0;
  uint64_t operations_failed = 0;
  uint64_t blocks_allocated = 0;
  uint64_t blocks_sealed = 0;
  uint64_t blocks_deduplicated = 0;
  std::array<std::array<uint64_t, kPriorityBands>, kEvictionReasons> blocks_evicted{};
  uint64_t copies = 0;
  uint64_t copied_tokens = 0;
  uint64_t shortages = 0;
  uint64_t preemptions = 0;
  uint64_t leases_granted = 0;
  uint64_t leases_expired = 0;
  uint64_t leases_displaced = 0;
  uint64_t blocks_reclaimed = 0;
  uint64_t audits = 0;
  uint64_t audit_failures = 0;
  uint64_t content_checks = 0;
  uint64_t content_mismatches = 0;
  uint64_t events_dropped = 0;

  friend bool operator==(const EngineCounters&, const EngineCounters&) = default;
};

struct WorkerStats {
  std::string name;
  Duration completed_age{};
};

// Sequences and prefix tokens of one tenant.
struct TenantStats {
  uint64_t sequences = 0;
  uint64_t begins = 0;
  uint64_t prefix_tokens_queried = 0;
  uint64_t prefix_tokens_hit_whole = 0;
  uint64_t prefix_tokens_hit_partial = 0;

  friend bool operator==(const TenantStats&, const TenantStats&) = default;
};

// Tenants with numbers of their own; later ones share kOtherTenants, as do names that are too long.
inline constexpr size_t kMostTenants = 64;
inline constexpr size_t kMostTenantBytes = 128;
inline constexpr char kOtherTenants[] = "(others)";

struct EngineStats {
  std::string pool_name;
  uint64_t block_count = 0;
  uint64_t block_bytes = 0;
  uint32_t block_tokens = 0;
  BlockStateCounts blocks;
  // One per layer group, without free and dead blocks.
  std::vector<BlockStateCounts> groups;
  uint64_t sequences = 0;
  uint64_t waiters = 0;
  uint64_t workers = 0;
  uint64_t leases = 0;
  uint64_t pins = 0;
  uint64_t pinned_blocks = 0;
  uint64_t claimed_blocks = 0;
  uint64_t tree_nodes = 0;
  uint64_t namespaces = 0;
  // Slots of all blocks in tables, and those that hold an entered token; shared blocks count once.
  uint64_t allocated_slots = 0;
  uint64_t used_slots = 0;
  Duration oldest_idle_age{};
  // Quarantined blocks whose worker is still there after fence_timeout.
  uint64_t quarantine_alarms = 0;
  bool draining = false;
  EngineCounters counters;
  PowerHistogram operations_per_step;
  PowerHistogram block_lifetime_ns;
  PowerHistogram idle_before_eviction_ns;
  PowerHistogram reuse_gap_ns;
  std::vector<WorkerStats> worker_stats;
  std::vector<UnavailableView> unavailable;
  // By name; the empty name is a tenant too.
  std::map<std::string, TenantStats> tenants = {{"", TenantStats{}}};
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_ENGINE_ENGINE_STATS_H_
