// Everything that one scrape of the server shows.
#ifndef QUIRE_CACHE_SERVICE_METRICS_COLLECTOR_H_
#define QUIRE_CACHE_SERVICE_METRICS_COLLECTOR_H_

#include <prometheus/collectable.h>

#include <functional>
#include <string>
#include <vector>

#include "cache_service/metrics/pool_snapshot.h"
#include "cache_service/metrics/rpc_stats.h"

namespace quire {

// Reads counters that others keep; keeps none of its own. Thread-safe if the source is.
class Collector final : public prometheus::Collectable {
 public:
  using StatsSource = std::function<std::vector<PoolSnapshot>()>;

  // `rpcs` must outlive the collector.
  Collector(StatsSource pools, const RpcStats& rpcs, std::string version);

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const StatsSource pools_;
  const RpcStats& rpcs_;
  const std::string version_;
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_METRICS_COLLECTOR_H_
