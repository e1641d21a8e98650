#include "worker/runtime/runner.h"

#include <thread>
#include <utility>

namespace quire::runtime {

RunOutcome RunWorkload(Scheduler& scheduler, Workload& workload, const RunLimits& limits,
                       bool keep_results, const Clock& clock, const Progress& progress) {
  RunOutcome outcome;
  const TimePoint start = clock.Now();
  uint64_t added = 0;
  for (;;) {
    const Duration elapsed = clock.Now() - start;
    outcome.seconds = std::chrono::duration<double>(elapsed).count();
    const bool ending = (limits.stop != nullptr && *limits.stop) ||
                        (limits.time > Duration::zero() && elapsed >= limits.time);
    const bool over =
        ending || workload.exhausted() || (limits.requests > 0 && added >= limits.requests);
    scheduler.set_ending(ending);
    if (over && scheduler.idle()) return outcome;
    while (!over && scheduler.unfinished() < limits.in_flight &&
           (limits.requests == 0 || added < limits.requests)) {
      std::optional<Request> request = workload.Next();
      if (!request.has_value()) break;
      scheduler.Add(*std::move(request));
      ++added;
    }
    outcome.status = scheduler.RunOnce();
    if (!outcome.status.ok()) return outcome;
    // Everybody reads: nothing to do until somebody asks again.
    if (scheduler.idle()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    for (RequestResult& result : scheduler.TakeResults()) {
      workload.OnResult(result);
      if (keep_results || !result.status.ok()) outcome.results.push_back(std::move(result));
    }
    if (progress != nullptr) progress(outcome.seconds);
  }
}

}  // namespace quire::runtime
