#include "tests/simulation/runner.h"

#include <chrono>

#include "tests/simulation/world.h"

namespace quire::simulation {

RunOutcome RunSeeds(const RunOptions& options,
                    const std::function<void(const RunOutcome&)>& progress) {
  using SteadyClock = std::chrono::steady_clock;
  const SteadyClock::time_point start = SteadyClock::now();
  const auto over = [&](const RunOutcome& outcome) {
    const std::chrono::duration<double> elapsed = SteadyClock::now() - start;
    return (options.seeds > 0 && outcome.seeds >= options.seeds) ||
           (options.operations > 0 && outcome.operations >= options.operations) ||
           (options.seconds > 0 && elapsed.count() >= options.seconds);
  };
  RunOutcome outcome;
  while (outcome.violation.empty() && !over(outcome)) {
    const uint64_t seed = options.first_seed + outcome.seeds++;
    World world(seed, options.audit_every, options.trace);
    world.Run(options.operations_per_seed);
    outcome.operations += world.operations();
    outcome.violation = world.violation();
    if (!outcome.violation.empty()) outcome.failed_seed = seed;
    if (progress) progress(outcome);
  }
  return outcome;
}

}  // namespace quire::simulation
