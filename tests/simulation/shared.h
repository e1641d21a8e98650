// What all parts of one simulation share.
#ifndef QUIRE_TESTS_SIMULATION_SHARED_H_
#define QUIRE_TESTS_SIMULATION_SHARED_H_

#include <cstdint>

#include "tests/simulation/judge.h"
#include "tests/simulation/network.h"
#include "tests/simulation/plan.h"
#include "tests/simulation/prompts.h"
#include "tests/simulation/random.h"

namespace quire::simulation {

struct Shared {
  const Plan& plan;
  Network& network;
  Prompts& prompts;
  Random& random;
  Judge& judge;
  // How often content was taken out of the tree on request: what was public may be gone since.
  uint64_t removals = 0;
};

}  // namespace quire::simulation

#endif  // QUIRE_TESTS_SIMULATION_SHARED_H_
