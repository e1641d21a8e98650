#include "cache_service/metrics/collector.h"

#include <array>
#include <utility>

#include "cache_service/metrics/engine_families.h"
#include "cache_service/metrics/family_sink.h"

namespace quire {
namespace {

constexpr std::array<const char*, RpcStats::kCodes> kCodeNames = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

void AddRpcs(const RpcStats& rpcs, FamilySink& sink) {
  for (size_t method = 0; method < rpcs.methods().size(); ++method) {
    const Labels labels = {{"service", rpcs.methods()[method].service},
                           {"method", rpcs.methods()[method].name}};
    for (size_t code = 0; code < kCodeNames.size(); ++code) {
      const uint64_t count = rpcs.Count(method, static_cast<int>(code));
      // OK is always there, so that a rate of errors has a denominator.
      if (count == 0 && code != 0) continue;
      Labels with_code = labels;
      with_code.emplace_back("code", kCodeNames[code]);
      sink.Counter({"rpcs_total", "Calls answered, and steps of streams, by status code."},
                   with_code, count);
    }
    sink.Histogram({"rpc_duration_seconds", "Time in the handler; for streams, per step."}, labels,
                   rpcs.Latency(method), kCallTimes);
  }
}

}  // namespace

Collector::Collector(StatsSource pools, const RpcStats& rpcs, std::string version)
    : pools_(std::move(pools)), rpcs_(rpcs), version_(std::move(version)) {}

std::vector<prometheus::MetricFamily> Collector::Collect() const {
  FamilySink sink;
  sink.Gauge({"build_info", "Version of the server; always 1."}, {{"version", version_}}, 1);
  for (const PoolSnapshot& pool : pools_()) {
    AddEngineGauges(pool.engine, sink);
    AddWorkerGauges(pool.engine, sink);
    AddEngineCounters(pool.engine, sink);
    AddTenants(pool.engine, sink);
    AddEngineHistograms(pool.engine, sink);
    AddSurroundings(pool, sink);
  }
  AddRpcs(rpcs_, sink);
  return sink.Take();
}

}  // namespace quire
