// Random steps on the engine and on a naive model that must agree in everything observable.
//
// A difference prints the shortest sequence of calls found that shows it and a line to repeat it:
//   property_test --gtest_filter=*Given* --seed=S [--operations=N] [--groups=G] [--blocks=B]
// With a seed and no number of operations the run is the full one of 200,000.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/model_run.h"

namespace quire::testing {
namespace {

constexpr uint32_t kActionsPerRun = 1000;

struct Flags {
  uint64_t seed = 0;
  uint64_t operations = 0;
  uint32_t groups = 1;
  uint32_t blocks = 40;
};

Flags flags;

// Runs of kActionsPerRun calls, each on an engine of its own, until `operations` calls were made.
void CheckAgainstModel(uint64_t seed, uint64_t operations, const ModelRunOptions& options) {
  for (uint64_t done = 0; done < operations; done += kActionsPerRun) {
    RandomChoices choices(seed + (done << 20));
    ModelRun run(options, choices);
    Recording recording = {{choices.TakeDrawn()}};
    for (uint32_t i = 0; i < kActionsPerRun; ++i) {
      const std::string difference = run.Act(choices);
      recording.push_back({choices.TakeDrawn()});
      if (difference.empty()) continue;
      std::string log;
      const auto fewer = Minimize(options, recording);
      const std::string shortest = Replay(options, fewer, &log);
      FAIL() << difference << "\nrepeat: --seed=" << seed + (done << 20)
             << " --operations=" << kActionsPerRun << " --groups=" << options.groups
             << " --blocks=" << options.max_blocks << "\nshortest:\n"
             << log << shortest;
    }
  }
}

TEST(PropertyTest, SmallPoolsAgreeWithTheModelAndPassEverySelfCheck) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    CheckAgainstModel(seed, 2000, {});
    if (HasFatalFailure()) return;
  }
}

TEST(PropertyTest, SeveralGroupsAgreeWithTheModel) {
  ModelRunOptions options;
  options.min_blocks = 12;
  options.groups = 2;
  CheckAgainstModel(101, 6000, options);
}

TEST(PropertyTest, LargerPoolsAgreeWithTheModel) {
  ModelRunOptions options;
  options.max_blocks = 200;
  options.audit_interval = 16;
  CheckAgainstModel(201, 4000, options);
}

constexpr uint64_t kFullOperations = 200'000;
constexpr uint64_t kShortOperations = 5000;

// The run of the command line, or else a short one.
TEST(PropertyTest, GivenSeedAgreesWithTheModel) {
  ModelRunOptions options;
  options.groups = flags.groups;
  options.max_blocks = flags.blocks;
  options.audit_interval = 8;
  const bool given = flags.seed != 0;
  const uint64_t operations = flags.operations != 0 ? flags.operations
                              : given               ? kFullOperations
                                                    : kShortOperations;
  CheckAgainstModel(given ? flags.seed : 301, operations, options);
}

}  // namespace

void ParseFlags(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t equal = argument.find('=');
    const std::string name = argument.substr(0, equal);
    const uint64_t value = equal == std::string::npos ? 0 : std::stoull(argument.substr(equal + 1));
    if (name == "--seed") flags.seed = value;
    if (name == "--operations") flags.operations = value;
    if (name == "--groups") flags.groups = static_cast<uint32_t>(value);
    if (name == "--blocks") flags.blocks = static_cast<uint32_t>(value);
  }
}

}  // namespace quire::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  quire::testing::ParseFlags(argc, argv);
  return RUN_ALL_TESTS();
}
