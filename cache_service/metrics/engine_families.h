// Metrics of one pool, from its engine's own statistics.
#ifndef QUIRE_CACHE_SERVICE_METRICS_ENGINE_FAMILIES_H_
#define QUIRE_CACHE_SERVICE_METRICS_ENGINE_FAMILIES_H_

#include "cache_service/engine/engine_stats.h"
#include "cache_service/metrics/family_sink.h"
#include "cache_service/metrics/pool_snapshot.h"

namespace quire {

void AddEngineGauges(const EngineStats& stats, FamilySink& sink);
// Who keeps blocks from being given away, how many, and for how long.
void AddWorkerGauges(const EngineStats& stats, FamilySink& sink);
// What is counted by tenant; EngineStats bounds their number.
void AddTenants(const EngineStats& stats, FamilySink& sink);
void AddSurroundings(const PoolSnapshot& pool, FamilySink& sink);
void AddEngineCounters(const EngineStats& stats, FamilySink& sink);
void AddEngineHistograms(const EngineStats& stats, FamilySink& sink);

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_METRICS_ENGINE_FAMILIES_H_
