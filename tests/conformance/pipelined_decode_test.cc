// Pipelined decode of two workers on one pool: every kernel reads only bytes of its own tokens.
#include <chrono>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/pipelined_worker.h"
#include "tests/support/scenario.h"

namespace quire::testing {
namespace {

struct PipelineCase {
  uint32_t lag;
  uint32_t drafts;
};

class PipelinedDecode : public ::testing::TestWithParam<PipelineCase> {
 protected:
  PipelineOptions Options(uint32_t seed) {
    PipelineOptions options;
    options.lag = GetParam().lag;
    options.drafts = GetParam().drafts;
    options.seed = seed;
    options.ahead = options.EnoughAhead();
    return options;
  }
};

constexpr uint32_t kBlockTokens = 4;

EngineOptions PipelinePool(uint32_t block_count, const std::vector<uint32_t>& windows) {
  // The longest sequence with all its look-ahead.
  return PoolOfWindows(kBlockTokens, block_count, windows, 160);
}

// Two workers of `options` for `ticks` steps each; the second draws otherwise.
struct PipelineRun {
  FacadeStory story;
  PipelinedWorker one;
  PipelinedWorker two;

  PipelineRun(const EngineOptions& pool, const PipelineOptions& options)
      : story(pool),
        one(story.driver(), story.memory(), AttachAs("one"), options),
        two(story.driver(), story.memory(), AttachAs("two"), Reseeded(options)) {}

  static PipelineOptions Reseeded(PipelineOptions options) {
    options.seed += 1;
    return options;
  }

  void Run(uint32_t ticks) {
    for (uint32_t i = 0; i < ticks && !::testing::Test::HasFailure(); ++i) {
      one.Tick();
      two.Tick();
      // The workers do not keep step with each other.
      if (i % 3 == 0) two.Tick();
      story.Pass(std::chrono::milliseconds(1));
      if (i % 100 == 0) story.ExpectSound();
    }
    one.Stop();
    two.Stop();
    const BlockStateCounts blocks = story.Blocks();
    EXPECT_EQ(blocks.free + blocks.idle, story.driver().options().block_count);
  }
};

TEST_P(PipelinedDecode, S77_KernelsReadTheirOwnTokensUnderPressure) {
  const PipelineOptions options = Options(1);
  // Less than half of what the sequences of both workers would like to hold.
  PipelineRun run(PipelinePool(60 + 2 * options.ahead, {0}), options);
  run.Run(25'000);
  EXPECT_GT(run.one.launches(), 10'000u);
  EXPECT_GT(run.one.preemptions() + run.two.preemptions(), 20u);
  EXPECT_GT(run.one.forks(), 20u);
  EXPECT_GT(run.one.tokens_reused(), 1'000u);
}

// Pools of one window set, each under pressure of its own draws, delay of answers and slack.
void DecodeThroughWindows(PipelineOptions options, const std::vector<uint32_t>& windows) {
  const auto groups = static_cast<uint32_t>(windows.size());
  for (uint32_t seed = 1; seed <= 7; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    options.seed = 10 * seed;
    options.answer_delay = 1 + seed % 4;
    options.ahead = options.EnoughAhead();
    // Blocks that have left a window are held by the full group's table alone.
    const uint32_t sequences = 50 + 10 * (seed % 4) + 2 * options.ahead;
    EngineOptions pool = PipelinePool(sequences * groups * 2 / (groups + 1), windows);
    pool.window_slack_tokens = seed % 3 == 0 ? 5 : 0;
    PipelineRun run(pool, options);
    run.Run(6'000);
    EXPECT_GT(run.one.preemptions() + run.two.preemptions(), 5u);
    EXPECT_GT(run.one.forks(), 5u);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST_P(PipelinedDecode, S77_KernelsReadTheirOwnTokensThroughAWindow) {
  DecodeThroughWindows(Options(1), {0, 9});
}

TEST_P(PipelinedDecode, S77_KernelsReadTheirOwnTokensThroughTwoWindows) {
  DecodeThroughWindows(Options(1), {7, 0, 21});
}

TEST_P(PipelinedDecode, S77_WithEnoughLookAheadNoLaunchWaits) {
  PipelineRun run(PipelinePool(2'000, {0}), Options(3));
  run.Run(3'000);
  EXPECT_EQ(run.one.waits() + run.two.waits(), 0u);
  EXPECT_EQ(run.one.preemptions() + run.two.preemptions(), 0u);
}

TEST_P(PipelinedDecode, S77_WithOneSlotLessSomeLaunchesWait) {
  PipelineOptions options = Options(3);
  options.ahead -= 1;
  PipelineRun run(PipelinePool(2'000, {0}), options);
  run.Run(1'000);
  EXPECT_GT(run.one.waits(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Lags, PipelinedDecode,
                         ::testing::Values(PipelineCase{1, 0}, PipelineCase{2, 0},
                                           PipelineCase{1, 3}, PipelineCase{2, 3}),
                         [](const auto& test) {
                           return "Lag" + std::to_string(test.param.lag) + "Drafts" +
                                  std::to_string(test.param.drafts);
                         });

}  // namespace
}  // namespace quire::testing
