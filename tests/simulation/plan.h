// The world of one seed: pool, workers, network and what goes wrong, all drawn from the seed.
#ifndef QUIRE_TESTS_SIMULATION_PLAN_H_
#define QUIRE_TESTS_SIMULATION_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cache_service/engine/engine_options.h"
#include "cache_service/engine/namespace_key.h"
#include "tests/simulation/judge.h"
#include "tests/simulation/random.h"

namespace quire::simulation {

enum class Wire : uint8_t {
  kStream,    // in order until it breaks
  kUnary,     // every step a call of its own: lost, repeated, overtaken
  kLockStep,  // unary, one step at a time, counters left to the server
};

struct WorkerPlan {
  std::string name;
  Wire wire = Wire::kStream;
  uint32_t steps_in_flight = 3;
  // Launches whose sampled value the host may not know yet.
  uint32_t lag = 1;
  uint32_t drafts = 0;
  // Slots kept beyond the length.
  uint32_t ahead = 0;
  uint32_t most_sequences = 4;
  // false: a tool that counts blocks and runs no kernel.
  bool map_memory = true;
};

// Chances are "one in so many"; 0 is never.
struct NetworkPlan {
  Tick longest_delay = 4;
  uint32_t lost = 0;
  uint32_t repeated = 0;
  // Per tick and worker.
  uint32_t stream_break = 0;
};

// Per tick.
struct ChaosPlan {
  uint32_t kill = 0;
  uint32_t stop = 0;
  uint32_t leave = 0;
  uint32_t server_pause = 0;
  uint32_t server_restart = 0;
  // Then a restart follows.
  uint32_t drain = 0;
  uint32_t admin = 0;
  uint32_t end_worker = 0;
  uint32_t flush = 0;
  // Per tick and rank: the device stands still for a while.
  uint32_t device_stall = 0;
};

struct Plan {
  uint64_t seed = 0;
  uint32_t ranks = 1;
  EngineOptions engine;
  // With a reader of block contents: checksums of public blocks.
  bool content_checks = false;
  // That reads wrongly one in so many times: what is right is taken for bad.
  uint32_t misread = 0;
  std::vector<WorkerPlan> workers;
  NetworkPlan network;
  ChaosPlan chaos;
  // Distinct prompts' heads that all workers draw from.
  uint32_t families = 3;
  uint32_t name_spaces = 1;
  Tick lease = 300;
  Tick lease_margin = 60;
  // Begins carry claims: one in so many.
  uint32_t claims = 0;
};

Plan DrawPlan(uint64_t seed);
// One line for whoever looks at a violation.
std::string Describe(const Plan& plan);

// Namespace number `index` in 0..3.
NamespaceParts NameSpaceParts(uint32_t index);

}  // namespace quire::simulation

#endif  // QUIRE_TESTS_SIMULATION_PLAN_H_
