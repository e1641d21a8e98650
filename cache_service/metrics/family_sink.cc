#include "cache_service/metrics/family_sink.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"

namespace quire {

prometheus::ClientMetric& FamilySink::Add(const MetricInfo& info, prometheus::MetricType type,
                                          const Labels& labels) {
  const auto [it, added] = index_of_.try_emplace(info.name, families_.size());
  if (added) {
    families_.push_back({absl::StrCat("quire_", info.name), info.help, type, {}});
  }
  prometheus::ClientMetric& metric = families_[it->second].metric.emplace_back();
  for (const auto& [name, value] : labels) metric.label.push_back({name, value});
  return metric;
}

void FamilySink::Gauge(const MetricInfo& info, const Labels& labels, double value) {
  Add(info, prometheus::MetricType::Gauge, labels).gauge.value = value;
}

void FamilySink::Counter(const MetricInfo& info, const Labels& labels, uint64_t value) {
  Add(info, prometheus::MetricType::Counter, labels).counter.value = static_cast<double>(value);
}

void FamilySink::Histogram(const MetricInfo& info, const Labels& labels,
                           const PowerHistogram& histogram, const BucketRange& range) {
  auto& out = Add(info, prometheus::MetricType::Histogram, labels).histogram;
  uint64_t below = 0;
  int next = 0;
  for (int power = range.first; power <= range.last; ++power) {
    for (; next <= power; ++next) below += histogram.counts[static_cast<size_t>(next)];
    out.bucket.push_back({below, std::ldexp(range.unit, power)});
  }
  out.bucket.push_back({histogram.count, std::numeric_limits<double>::infinity()});
  out.sample_count = histogram.count;
  out.sample_sum = histogram.sum * range.unit;
}

}  // namespace quire
