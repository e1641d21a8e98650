// Counts and latencies of calls, cheap enough for every step; read at scrape time.
#ifndef QUIRE_CACHE_SERVICE_METRICS_RPC_STATS_H_
#define QUIRE_CACHE_SERVICE_METRICS_RPC_STATS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cache_service/base/clock.h"
#include "cache_service/engine/engine_stats.h"

namespace quire {

// Exponential histogram of nanoseconds. Thread-safe, without locks; a snapshot taken during a
// recording may miss it in one of its numbers.
class LatencyHistogram {
 public:
  void Record(Duration elapsed);
  PowerHistogram Snapshot() const;

 private:
  std::array<std::atomic<uint64_t>, PowerHistogram::kBuckets> counts_{};
  std::atomic<uint64_t> sum_ns_{0};
};

// One row per method. Thread-safe.
class RpcStats {
 public:
  // Status codes 0 to 16 of gRPC.
  static constexpr int kCodes = 17;

  struct Method {
    std::string service;
    std::string name;
  };

  explicit RpcStats(std::vector<Method> methods);

  // `method` is an index into methods(); an unknown code counts as UNKNOWN.
  void Record(size_t method, int code, Duration elapsed);

  const std::vector<Method>& methods() const { return methods_; }

  uint64_t Count(size_t method, int code) const;
  PowerHistogram Latency(size_t method) const;

 private:
  struct Row {
    std::array<std::atomic<uint64_t>, kCodes> counts{};
    LatencyHistogram latency;
  };

  const std::vector<Method> methods_;
  const std::unique_ptr<Row[]> rows_;
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_METRICS_RPC_STATS_H_
