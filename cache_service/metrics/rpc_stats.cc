#include "cache_service/metrics/rpc_stats.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace quire {

void LatencyHistogram::Record(Duration elapsed) {
  const auto ns = static_cast<uint64_t>(std::max<Duration::rep>(elapsed.count(), 0));
  const auto bucket =
      std::min<size_t>(static_cast<size_t>(std::bit_width(ns)), PowerHistogram::kBuckets - 1);
  counts_[bucket].fetch_add(1, std::memory_order_relaxed);
  sum_ns_.fetch_add(ns, std::memory_order_relaxed);
}

PowerHistogram LatencyHistogram::Snapshot() const {
  PowerHistogram snapshot;
  for (size_t i = 0; i < counts_.size(); ++i) {
    snapshot.counts[i] = counts_[i].load(std::memory_order_relaxed);
    snapshot.count += snapshot.counts[i];
  }
  snapshot.sum = static_cast<double>(sum_ns_.load(std::memory_order_relaxed));
  return snapshot;
}

RpcStats::RpcStats(std::vector<Method> methods)
    : methods_(std::move(methods)), rows_(std::make_unique<Row[]>(methods_.size())) {}

void RpcStats::Record(size_t method, int code, Duration elapsed) {
  constexpr int kUnknown = 2;
  Row& row = rows_[method];
  const int known = code >= 0 && code < kCodes ? code : kUnknown;
  row.counts[static_cast<size_t>(known)].fetch_add(1, std::memory_order_relaxed);
  row.latency.Record(elapsed);
}

uint64_t RpcStats::Count(size_t method, int code) const {
  return rows_[method].counts[static_cast<size_t>(code)].load(std::memory_order_relaxed);
}

PowerHistogram RpcStats::Latency(size_t method) const { return rows_[method].latency.Snapshot(); }

}  // namespace quire
