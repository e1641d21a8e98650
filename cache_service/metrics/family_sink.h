// Gathers samples into the families of one Prometheus scrape.
#ifndef QUIRE_CACHE_SERVICE_METRICS_FAMILY_SINK_H_
#define QUIRE_CACHE_SERVICE_METRICS_FAMILY_SINK_H_

#include <prometheus/metric_family.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "cache_service/engine/engine_stats.h"

namespace quire {

using Labels = std::vector<std::pair<std::string, std::string>>;

// Name and help of a family; the prefix quire_ is added.
struct MetricInfo {
  const char* name;
  const char* help;
};

// Which powers of two become bucket bounds, and what one unit of the histogram is worth.
struct BucketRange {
  int first;
  int last;
  double unit;
};

inline constexpr double kNanosecond = 1e-9;
// 1 us to 34 s, and 1 us to 39 h.
inline constexpr BucketRange kCallTimes{10, 35, kNanosecond};
inline constexpr BucketRange kBlockTimes{10, 47, kNanosecond};

// Not thread-safe; one per scrape. Samples of one family may come in any order.
class FamilySink {
 public:
  void Gauge(const MetricInfo& info, const Labels& labels, double value);
  void Counter(const MetricInfo& info, const Labels& labels, uint64_t value);
  void Histogram(const MetricInfo& info, const Labels& labels, const PowerHistogram& histogram,
                 const BucketRange& range);

  std::vector<prometheus::MetricFamily> Take() { return std::move(families_); }

 private:
  prometheus::ClientMetric& Add(const MetricInfo& info, prometheus::MetricType type,
                                const Labels& labels);

  std::vector<prometheus::MetricFamily> families_;
  absl::flat_hash_map<std::string, size_t> index_of_;
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_METRICS_FAMILY_SINK_H_
