// Runs a workload on a scheduler until time or requests are used up.
#ifndef QUIRE_WORKER_RUNTIME_RUNNER_H_
#define QUIRE_WORKER_RUNTIME_RUNNER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "cache_service/base/clock.h"
#include "worker/runtime/scheduler.h"
#include "worker/runtime/workload.h"

namespace quire::runtime {

struct RunLimits {
  // No new request after this; what runs is finished. Zero: no limit.
  Duration time{};
  uint64_t requests = 0;
  // Requests handed to the scheduler and not finished.
  uint32_t in_flight = 64;
  // If not null: no new request once it is true.
  const std::atomic<bool>* stop = nullptr;
};

struct RunOutcome {
  std::vector<RequestResult> results;
  double seconds = 0;
  // The scheduler's final error: the run ended with requests unfinished.
  absl::Status status;
};

// Called after each round.
using Progress = std::function<void(double seconds)>;

// Keeps every result if `keep_results`, otherwise only failed ones.
RunOutcome RunWorkload(Scheduler& scheduler, Workload& workload, const RunLimits& limits,
                       bool keep_results, const Clock& clock, const Progress& progress);

}  // namespace quire::runtime

#endif  // QUIRE_WORKER_RUNTIME_RUNNER_H_
