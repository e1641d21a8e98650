// Runs seeds one after the other and says how to repeat one that fails.
#ifndef QUIRE_TESTS_SIMULATION_RUNNER_H_
#define QUIRE_TESTS_SIMULATION_RUNNER_H_

#include <cstdint>
#include <functional>
#include <string>

namespace quire::simulation {

inline constexpr uint64_t kOperationsPerSeed = 10'000;

struct RunOptions {
  uint64_t first_seed = 1;
  // 0: no limit.
  uint64_t seeds = 0;
  // In all; 0: no limit.
  uint64_t operations = 0;
  double seconds = 0;
  uint64_t operations_per_seed = kOperationsPerSeed;
  // Simulated milliseconds between two looks for broken invariants.
  uint64_t audit_every = 64;
  bool trace = false;
};

struct RunOutcome {
  uint64_t seeds = 0;
  uint64_t operations = 0;
  // "" if there is none; otherwise of `failed_seed`, which was the last one.
  std::string violation;
  uint64_t failed_seed = 0;
};

// Until a limit is reached or a seed fails. `progress`, if any, is called after every seed.
RunOutcome RunSeeds(const RunOptions& options,
                    const std::function<void(const RunOutcome&)>& progress = {});

}  // namespace quire::simulation

#endif  // QUIRE_TESTS_SIMULATION_RUNNER_H_
