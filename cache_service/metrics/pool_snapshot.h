// What a scrape knows of one pool: its engine's numbers, and those kept around it.
#ifndef QUIRE_CACHE_SERVICE_METRICS_POOL_SNAPSHOT_H_
#define QUIRE_CACHE_SERVICE_METRICS_POOL_SNAPSHOT_H_

#include "cache_service/engine/engine_stats.h"

namespace quire {

struct PoolSnapshot {
  EngineStats engine{};
  // Time in the engine per step, in nanoseconds.
  PowerHistogram step_latency_ns{};
  // Somebody cut or removed a file of the pool's memory.
  bool memory_damaged = false;
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_METRICS_POOL_SNAPSHOT_H_
