#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cache_service/metrics/engine_families.h"
#include "cache_service/metrics/pool_labels.h"

namespace quire {
namespace {

constexpr std::array<const char*, kEvictionReasons> kReasonNames = {
    "capacity", "dead", "requested", "flushed", "dropped", "bad"};

std::string BandName(int band) {
  if (band == kPriorityBands - 1) return "100";
  return absl::StrCat(band * 10, "-", band * 10 + 9);
}

void AddEvictions(const EngineCounters& counters, const Labels& pool, FamilySink& sink) {
  for (size_t reason = 0; reason < kReasonNames.size(); ++reason) {
    for (int band = 0; band < kPriorityBands; ++band) {
      sink.Counter({"blocks_evicted_total", "Blocks whose content was taken out of the tree."},
                   With(With(pool, "reason", kReasonNames[reason]), "priority", BandName(band)),
                   counters.blocks_evicted[reason][static_cast<size_t>(band)]);
    }
  }
}

}  // namespace

void AddEngineCounters(const EngineStats& stats, FamilySink& sink) {
  const Labels pool = PoolLabels(stats.pool_name);
  const EngineCounters& c = stats.counters;
  const std::pair<MetricInfo, uint64_t> counters[] = {
      {{"finishes_total", "Sequences finished by their worker."}, c.finishes},
      {{"forks_total", "Sequences made by fork."}, c.forks},
      {{"steps_total", "Steps answered."}, c.steps},
      {{"steps_repeated_total", "Steps answered again from memory."}, c.steps_repeated},
      {{"steps_refused_total", "Steps refused as a whole."}, c.steps_refused},
      {{"operations_total", "Operations of answered steps."}, c.operations},
      {{"operations_failed_total", "Operations that failed in an answered step."},
       c.operations_failed},
      {{"blocks_allocated_total", "Blocks taken for new tokens or copies."}, c.blocks_allocated},
      {{"blocks_sealed_total", "Blocks that became full and committed."}, c.blocks_sealed},
      {{"blocks_deduplicated_total", "Sealed blocks replaced by an equal one."},
       c.blocks_deduplicated},
      {{"copy_on_write_copies_total", "Copy orders given."}, c.copies},
      {{"copied_tokens_total", "Tokens of all copy orders."}, c.copied_tokens},
      {{"shortages_total", "Operations refused with POOL_EXHAUSTED."}, c.shortages},
      {{"preemptions_total", "Sequences that ended while waiting for blocks."}, c.preemptions},
      {{"leases_granted_total", "Leases granted."}, c.leases_granted},
      {{"leases_expired_total", "Leases that expired."}, c.leases_expired},
      {{"leases_displaced_total", "Leases ended by a higher incarnation."}, c.leases_displaced},
      {{"blocks_reclaimed_total", "Blocks taken back from ended leases."}, c.blocks_reclaimed},
      {{"audits_total", "Audits run."}, c.audits},
      {{"audit_failures_total", "Findings of audits."}, c.audit_failures},
      {{"content_checks_total", "Blocks whose bytes were compared with their checksum."},
       c.content_checks},
      {{"content_mismatches_total", "Blocks that did not hold what they are filed under."},
       c.content_mismatches},
      {{"events_dropped_total", "Events that no observer took."}, c.events_dropped},
  };
  for (const auto& [info, value] : counters) sink.Counter(info, pool, value);
  AddEvictions(c, pool, sink);
}

void AddEngineHistograms(const EngineStats& stats, FamilySink& sink) {
  const Labels pool = PoolLabels(stats.pool_name);
  sink.Histogram({"operations_per_step", "Operations of one step; a column entry counts as one."},
                 pool, stats.operations_per_step, {0, 13, 1.0});
  sink.Histogram({"block_lifetime_seconds", "From the sealing of a block to its eviction."}, pool,
                 stats.block_lifetime_ns, kBlockTimes);
  sink.Histogram({"idle_before_eviction_seconds", "Time an evicted block had been idle."}, pool,
                 stats.idle_before_eviction_ns, kBlockTimes);
  sink.Histogram({"reuse_gap_seconds", "Time a reused block had been idle."}, pool,
                 stats.reuse_gap_ns, kBlockTimes);
}

}  // namespace quire
