// Numbers by worker and by tenant, and those kept around the engine.
#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <utility>

#include "cache_service/metrics/engine_families.h"
#include "cache_service/metrics/pool_labels.h"

namespace quire {
namespace {

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

// One name may have a live incarnation and several dead ones.
std::map<std::string, UnavailableView> ByName(const std::vector<UnavailableView>& views) {
  std::map<std::string, UnavailableView> sums;
  for (const UnavailableView& view : views) {
    UnavailableView& sum = sums[view.worker];
    sum.fenced += view.fenced;
    sum.quarantined += view.quarantined;
    sum.claimed += view.claimed;
    sum.held += view.held;
    sum.quarantined_for = std::max(sum.quarantined_for, view.quarantined_for);
  }
  return sums;
}

}  // namespace

void AddWorkerGauges(const EngineStats& stats, FamilySink& sink) {
  const Labels pool = PoolLabels(stats.pool_name);
  for (const WorkerStats& worker : stats.worker_stats) {
    sink.Gauge({"worker_completed_age_seconds", "Time since the worker's completed step rose."},
               With(pool, "worker", worker.name), Seconds(worker.completed_age));
  }
  for (const auto& [name, view] : ByName(stats.unavailable)) {
    const Labels labels = With(pool, "worker", name);
    const std::pair<const char*, uint64_t> reasons[] = {{"held", view.held},
                                                        {"claimed", view.claimed},
                                                        {"fenced", view.fenced},
                                                        {"quarantined", view.quarantined}};
    for (const auto& [reason, count] : reasons) {
      sink.Gauge({"worker_blocks", "Blocks that a worker keeps from being given away, by reason."},
                 With(labels, "reason", reason), static_cast<double>(count));
    }
    sink.Gauge({"worker_quarantine_age_seconds", "Age of the worker's oldest quarantine."}, labels,
               Seconds(view.quarantined_for));
  }
}

void AddTenants(const EngineStats& stats, FamilySink& sink) {
  for (const auto& [tenant, numbers] : stats.tenants) {
    const Labels labels = With(PoolLabels(stats.pool_name), "tenant", tenant);
    sink.Gauge({"sequences", "Live sequences."}, labels, static_cast<double>(numbers.sequences));
    sink.Counter({"begins_total", "Sequences admitted."}, labels, numbers.begins);
    sink.Counter({"prefix_tokens_queried_total", "Prompt tokens of admitted sequences."}, labels,
                 numbers.prefix_tokens_queried);
    const MetricInfo hit{"prefix_tokens_hit_total", "Prompt tokens that were reused."};
    sink.Counter(hit, With(labels, "source", "whole"), numbers.prefix_tokens_hit_whole);
    sink.Counter(hit, With(labels, "source", "partial"), numbers.prefix_tokens_hit_partial);
  }
}

void AddSurroundings(const PoolSnapshot& pool, FamilySink& sink) {
  const Labels labels = PoolLabels(pool.engine.pool_name);
  sink.Histogram({"step_duration_seconds", "Time in the engine per step."}, labels,
                 pool.step_latency_ns, kCallTimes);
  sink.Gauge({"memory_damaged", "1 if somebody cut or removed a file of the pool's memory."},
             labels, pool.memory_damaged ? 1.0 : 0.0);
}

}  // namespace quire
