#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cache_service/metrics/engine_families.h"
#include "cache_service/metrics/pool_labels.h"

namespace quire {
namespace {

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

double InternalWaste(const EngineStats& stats) {
  if (stats.allocated_slots == 0) return 0;
  return 1.0 - static_cast<double>(stats.used_slots) / static_cast<double>(stats.allocated_slots);
}

void AddState(const EngineStats& stats, const Labels& labels, uint64_t count, FamilySink& sink) {
  sink.Gauge({"blocks", "Blocks of the pool by state, and by layer group where they have one."},
             labels, static_cast<double>(count));
  sink.Gauge({"blocks_bytes", "Bytes of the pool's blocks by state and layer group."}, labels,
             static_cast<double>(count * stats.block_bytes));
}

using State = std::pair<const char*, uint64_t BlockStateCounts::*>;

void AddBlockStates(const EngineStats& stats, const Labels& pool, FamilySink& sink) {
  AddState(stats, With(pool, "state", "free"), stats.blocks.free, sink);
  const State states[] = {{"fenced", &BlockStateCounts::fenced},
                          {"quarantined", &BlockStateCounts::quarantined},
                          {"filling", &BlockStateCounts::filling},
                          {"pending", &BlockStateCounts::pending},
                          {"referenced", &BlockStateCounts::referenced},
                          {"idle", &BlockStateCounts::idle},
                          {"bad", &BlockStateCounts::bad}};
  for (size_t group = 0; group < stats.groups.size(); ++group) {
    const Labels labels = With(pool, "group", absl::StrCat(group));
    for (const auto& [state, count] : states) {
      AddState(stats, With(labels, "state", state), stats.groups[group].*count, sink);
    }
  }
}

}  // namespace

void AddEngineGauges(const EngineStats& stats, FamilySink& sink) {
  const Labels pool = PoolLabels(stats.pool_name);
  AddBlockStates(stats, pool, sink);
  const std::pair<MetricInfo, double> gauges[] = {
      {{"dead_blocks", "Blocks that no hit can use any more."},
       static_cast<double>(stats.blocks.dead)},
      {{"pool_bytes", "Bytes of all blocks of the pool."},
       static_cast<double>(stats.block_count * stats.block_bytes)},
      {{"block_tokens", "Token slots of one block."}, static_cast<double>(stats.block_tokens)},
      {{"waiters", "Sequences whose growth was refused and that wait for blocks."},
       static_cast<double>(stats.waiters)},
      {{"workers", "Attached workers."}, static_cast<double>(stats.workers)},
      {{"leases", "Leases that are good."}, static_cast<double>(stats.leases)},
      {{"pins", "Pins that are good."}, static_cast<double>(stats.pins)},
      {{"pinned_blocks", "Blocks that pins keep resident."},
       static_cast<double>(stats.pinned_blocks)},
      {{"claimed_blocks", "Blocks promised to sequences and not yet taken."},
       static_cast<double>(stats.claimed_blocks)},
      {{"tree_nodes", "Nodes of the prefix tree."}, static_cast<double>(stats.tree_nodes)},
      {{"namespaces", "Namespaces that have content."}, static_cast<double>(stats.namespaces)},
      {{"internal_waste_ratio", "Share of allocated slots that hold no token."},
       InternalWaste(stats)},
      {{"oldest_idle_age_seconds", "Time since the last use of the block idle for longest."},
       Seconds(stats.oldest_idle_age)},
      {{"quarantine_alarm_blocks", "Quarantined blocks whose worker outlived fence_timeout."},
       static_cast<double>(stats.quarantine_alarms)},
      {{"draining", "1 while the pool admits nothing new."}, stats.draining ? 1.0 : 0.0},
  };
  for (const auto& [info, value] : gauges) sink.Gauge(info, pool, value);
}

}  // namespace quire
