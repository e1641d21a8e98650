// Metrics of one pool, from its engine's own statistics.
#ifndef QUIRE_CACHE_SERVICE_METRICS_ENGINE_FAMILIES_H_
#define QUIRE_CACHE_SERVICE_METRICS_ENGINE_FAMILIES_H_

#include "cache_service/engine/engine_stats.h"
#include "cache_service/metrics/family_sink.h"

namespace quire {

void AddEngineGauges(const EngineStats& stats, FamilySink& sink);
void AddEngineCounters(const EngineStats& stats, FamilySink& sink);
void AddEngineHistograms(const EngineStats& stats, FamilySink& sink);

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_METRICS_ENGINE_FAMILIES_H_
