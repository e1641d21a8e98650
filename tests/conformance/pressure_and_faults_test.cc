// Shortage and its order, steps sent before a failure was known, content taken out under a
// sequence.
#include <chrono>
#include <string>

#include "gmock/gmock.h"
#include "tests/conformance/served_scenario.h"
#include "tests/support/scenario.h"

namespace quire::testing {
namespace {

constexpr SequenceHandle kA = 1;
constexpr SequenceHandle kB = 2;

TEST_P(PressureAndFaults, S63_AHitThatDoesNotFitIsShortened) {
  Story story(Serve(Pool(16, 3)));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 48));
  w.Finish(kA);
  const BeginResult begun = w.Prompt(kB, Text(1, 48));
  EXPECT_EQ(begun.reused_tokens, 32u);
  EXPECT_EQ(begun.copied_tokens, 0u);
}

TEST_P(PressureAndFaults, S64_AStepSentBeforeTheFailureWasKnownChangesNothing) {
  Story story(Serve(Pool(16, 4)));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 32));
  w.Prompt(kB, Text(2, 32));
  const StateOf before = Snapshot(story.driver());
  ASSERT_TRUE(w.Send(Batch().Advance(kA, 32, {101})).ok());
  ASSERT_TRUE(w.Send(Batch().Advance(kA, 33, {102})).ok());
  EXPECT_EQ(ErrorOf(w.ApplyNext()).reason, Reason::kPoolExhausted);
  const Error error = ErrorOf(w.ApplyNext());
  EXPECT_EQ(error.reason, Reason::kLengthMismatch);
  EXPECT_EQ(error.Detail("length"), "32");
  w.Settle();
  EXPECT_EQ(Snapshot(story.driver()), before);
  EXPECT_EQ(w.View(kA).length, 32u);
}

TEST_P(PressureAndFaults, S65_TheOldestRefusedGrowthGetsTheNextBlock) {
  EngineOptions options = Pool(16, 10);
  // Waiters keep their turn however slowly this runs.
  options.retry_interval = std::chrono::minutes(1);
  Story story(Serve(options));
  Worker& elder = story.Attach("elder");
  Worker& younger = story.Attach("younger");
  Worker& third = story.Attach("third");
  elder.Prompt(kA, Text(1, 80));
  younger.Prompt(kA, Text(2, 64));
  younger.Prompt(kB, Text(3, 3));
  const Batch grow = Batch().Advance(kA, 80, {101});
  const Batch grow_younger = Batch().Advance(kA, 64, {102});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(ErrorOf(younger.Do(grow_younger)).reason, Reason::kPoolExhausted);
    EXPECT_EQ(ErrorOf(elder.Do(grow)).reason, Reason::kPoolExhausted);
  }
  EXPECT_EQ(story.driver().Stats().waiters, 2u);

  younger.Finish(kB);
  EXPECT_EQ(story.Blocks().free, 1u);
  const Error waits = ErrorOf(younger.Do(grow_younger));
  EXPECT_EQ(waits.reason, Reason::kPoolExhausted);
  EXPECT_EQ(waits.Detail("waiting_worker"), "elder");
  EXPECT_EQ(waits.Detail("waiting_sequence"), std::to_string(kA));
  EXPECT_EQ(third.BeginError(kA, Text(4, 3)).reason, Reason::kPoolExhausted);
  EXPECT_EQ(story.Blocks().free, 1u);
  elder.Must(grow);
  EXPECT_EQ(story.driver().Stats().waiters, 1u);
}

TEST_P(PressureAndFaults, S67_NothingOfAFlushedSequenceIsFoundAgain) {
  Story story(Serve(Pool(16, 20)));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 55));
  w.Prompt(kB, Text(2, 32));
  w.Finish(kB);
  EXPECT_EQ(story.driver().Flush(), 5u);
  EXPECT_EQ(story.Peek(Text(1, 56)), 0u);
  EXPECT_EQ(story.Peek(Text(2, 33)), 0u);
  w.Generate(kA, Text(3, 30));
  w.Commit(kA, 85);
  const Tokens whole = Join(Text(1, 55), Text(3, 31));
  EXPECT_EQ(story.Peek(whole), 0u);
  EXPECT_EQ(w.Prompt(kB, whole).reused_tokens, 0u);
  EXPECT_EQ(story.Peek(whole), 80u) << "a sequence begun after the flush fills the cache";
  w.Finish(kA);
  w.Finish(kB);
  EXPECT_EQ(story.Blocks().free + story.Blocks().idle, 20u);
}

}  // namespace
}  // namespace quire::testing
