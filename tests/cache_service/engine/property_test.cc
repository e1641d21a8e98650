// Random operations on the engine and on a naive model that must agree in everything observable.
//
// Every run prints its seed and the line that repeats it; a difference is printed at once, then the
// shortest sequence of calls found that shows it:
//   property_test --gtest_filter=*Given* --seed=S [--operations=N] [--groups=G] [--blocks=B]
//       [--windows=1] [--watermark=1] [--worker_memory=1]
#include <gtest/gtest.h>

#include <iostream>
#include <sstream>
#include <string>

#include "tests/support/model_replay.h"
#include "tests/support/model_run.h"

namespace quire::testing {
namespace {

// Slow builds check less, and say so.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
constexpr bool kSlowBuild = true;
#else
constexpr bool kSlowBuild = false;
#endif
constexpr uint64_t kFullOperations = kSlowBuild ? 20'000 : 200'000;
constexpr uint32_t kCallsPerEngine = 1000;

// 0: not given.
struct Flags {
  uint64_t seed = 0;
  uint64_t operations = 0;
  uint32_t groups = 1;
  uint32_t blocks = 40;
  bool windows = false;
  bool watermark = false;
  bool worker_memory = false;
};

Flags flags;

std::string RepeatLine(uint64_t seed, uint64_t operations, const ModelRunOptions& options) {
  std::ostringstream text;
  text << "repeat: property_test --gtest_filter=*Given* --seed=" << seed
       << " --operations=" << operations << " --groups=" << options.groups
       << " --blocks=" << options.max_blocks << (options.windows ? " --windows=1" : "")
       << (options.watermark ? " --watermark=1" : "")
       << (options.worker_memory ? " --worker_memory=1" : "");
  return text.str();
}

// kCallsPerEngine calls to a fresh engine; returns how many operations they carried.
uint64_t CheckOneEngine(uint64_t seed, const ModelRunOptions& options) {
  RandomChoices choices(seed);
  ModelRun run(options, choices);
  Recording recording = {{choices.TakeDrawn()}};
  for (uint32_t i = 0; i < kCallsPerEngine; ++i) {
    const std::string difference = run.Act(choices);
    recording.push_back({choices.TakeDrawn()});
    if (difference.empty()) continue;
    std::cout << difference << "\n" << RepeatLine(seed, 1, options) << std::endl;
    std::string log;
    const std::string shortest = Replay(options, Minimize(options, recording), &log);
    ADD_FAILURE() << difference << "\nshortest:\n" << log << shortest;
    break;
  }
  return run.operations();
}

void CheckAgainstModel(uint64_t seed, uint64_t operations, const ModelRunOptions& options) {
  uint64_t done = 0;
  for (uint64_t engine = 0; done < operations && !::testing::Test::HasFailure(); ++engine) {
    done += CheckOneEngine(seed + (engine << 20), options);
  }
  std::cout << "seed " << seed << ": " << done << " operations"
            << (kSlowBuild ? " (fewer, because this build is slow)" : "") << "; "
            << RepeatLine(seed, operations, options) << std::endl;
}

// --- With the self-check after every call ---

TEST(PropertyTest, SmallPoolsPassEverySelfCheck) {
  for (uint64_t seed = 1; seed <= 8; ++seed) CheckAgainstModel(seed, 3000, {});
}

TEST(PropertyTest, SeveralGroupsPassEverySelfCheck) {
  ModelRunOptions options;
  options.groups = 2;
  CheckAgainstModel(101, 10'000, options);
}

TEST(PropertyTest, WindowsPassEverySelfCheck) {
  ModelRunOptions options;
  options.groups = 2;
  options.windows = true;
  for (uint64_t seed = 151; seed < 155; ++seed) CheckAgainstModel(seed, 3000, options);
}

TEST(PropertyTest, WatermarksPassEverySelfCheck) {
  ModelRunOptions options;
  options.watermark = true;
  for (uint64_t seed = 161; seed < 165; ++seed) CheckAgainstModel(seed, 3000, options);
}

TEST(PropertyTest, MemoryOfAWorkerPassesEverySelfCheck) {
  ModelRunOptions options;
  options.groups = 3;
  options.windows = true;
  options.worker_memory = true;
  for (uint64_t seed = 181; seed < 185; ++seed) CheckAgainstModel(seed, 3000, options);
}

TEST(PropertyTest, LargerPoolsPassEverySelfCheck) {
  ModelRunOptions options;
  options.max_blocks = 200;
  CheckAgainstModel(201, 5000, options);
}

// --- Full size, the self-check now and then ---

struct FullRun {
  uint64_t seed;
  uint32_t groups;
  bool windows;
};

class FullPropertyTest : public ::testing::TestWithParam<FullRun> {};

TEST_P(FullPropertyTest, AgreesWithTheModel) {
  ModelRunOptions options;
  options.groups = GetParam().groups;
  options.windows = GetParam().windows;
  options.audit_interval = 8;
  CheckAgainstModel(GetParam().seed, kFullOperations, options);
}

INSTANTIATE_TEST_SUITE_P(Seeds, FullPropertyTest,
                         ::testing::Values(FullRun{1, 1, false}, FullRun{2, 1, false},
                                           FullRun{1, 2, false}, FullRun{2, 2, false},
                                           FullRun{1, 2, true}, FullRun{2, 2, true},
                                           FullRun{1, 3, true}),
                         [](const auto& run) {
                           return "Seed" + std::to_string(run.param.seed) + "Groups" +
                                  std::to_string(run.param.groups) +
                                  (run.param.windows ? "Windows" : "");
                         });

// The run of the command line: without a number of operations at full size, without a seed short.
TEST(PropertyTest, GivenSeedAgreesWithTheModel) {
  ModelRunOptions options;
  options.groups = flags.groups;
  options.max_blocks = flags.blocks;
  options.windows = flags.windows;
  options.watermark = flags.watermark;
  options.worker_memory = flags.worker_memory;
  options.audit_interval = 8;
  const uint64_t operations = flags.seed == 0 ? kCallsPerEngine : kFullOperations;
  CheckAgainstModel(flags.seed == 0 ? 301 : flags.seed,
                    flags.operations == 0 ? operations : flags.operations, options);
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
    if (name == "--windows") flags.windows = value != 0;
    if (name == "--watermark") flags.watermark = value != 0;
    if (name == "--worker_memory") flags.worker_memory = value != 0;
  }
}

}  // namespace quire::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  quire::testing::ParseFlags(argc, argv);
  return RUN_ALL_TESTS();
}
