// The simulation notices each rule that is broken on purpose, and nothing when none is.
#include "tests/simulation/faults.h"

#include <algorithm>
#include <string>

#include "gtest/gtest.h"
#include "tests/simulation/runner.h"

namespace quire::simulation {
namespace {

// Less than half of a minute's work for one core of a slow machine.
constexpr uint64_t kMostSeeds = 40;
constexpr uint64_t kFirstSeed = 1'000'001;

class SimulationFault : public ::testing::TestWithParam<NamedFault> {
 protected:
  ~SimulationFault() override { injected_fault = Fault::kNone; }
};

TEST_P(SimulationFault, IsNoticed) {
  RunOptions options;
  options.first_seed = kFirstSeed;
  options.seeds = kMostSeeds;
  // Before what is broken breaks more.
  options.audit_every = 1;
  injected_fault = GetParam().fault;
  const RunOutcome broken = RunSeeds(options);
  EXPECT_NE(broken.violation, "") << "in " << broken.operations << " operations";
  RecordProperty("operations", std::to_string(broken.operations));
  RecordProperty("violation", broken.violation);

  injected_fault = Fault::kNone;
  options.first_seed = broken.failed_seed;
  options.seeds = 1;
  EXPECT_EQ(RunSeeds(options).violation, "") << "the same seed without the fault";
}

INSTANTIATE_TEST_SUITE_P(EachRule, SimulationFault, ::testing::ValuesIn(kFaults),
                         [](const auto& test) {
                           std::string name(test.param.name);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace quire::simulation
