// Slots, drafts, shortage, claims and the watermark.
#include <chrono>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/support/scenario.h"

namespace quire::testing {
namespace {

using ::testing::SizeIs;

constexpr SequenceHandle kA = 1;
constexpr SequenceHandle kB = 2;
constexpr SequenceHandle kC = 3;

TEST(Growth, S26_ExtendTakesABlockWhenTheSlotsNeedOne) {
  FacadeStory story(Pool(4, 10));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 3));
  for (const auto& [slots, blocks] :
       std::vector<std::pair<uint32_t, size_t>>{{5, 2}, {8, 2}, {9, 3}, {4, 3}}) {
    w.Extend(kA, slots);
    EXPECT_THAT(w.Table(kA), SizeIs(blocks)) << slots << " slots";
  }
  EXPECT_EQ(w.View(kA).length, 3u);
  EXPECT_EQ(w.View(kA).reserved, 9u);
}

TEST(Growth, S27_RejectedDraftsGiveTheirBlocksBack) {
  FacadeStory story(Pool(4, 10));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 6));
  w.Must(Batch().Advance(kA, 6, Text(2, 4)));
  EXPECT_EQ(w.Length(kA), 10u);
  EXPECT_THAT(w.Table(kA), SizeIs(3));
  w.Truncate(kA, 7);
  EXPECT_THAT(w.Table(kA), SizeIs(2));
  EXPECT_EQ(story.Blocks().free, 8u);
  const StepResult answer = w.Must(Batch().Advance(kA, 7, {99}));
  EXPECT_THAT(answer.blocks, SizeIs(0));
  EXPECT_THAT(w.Table(kA), SizeIs(2));
}

TEST(Growth, S28_AReservedRunOfStepsReturnsNoBlockAndNoCopy) {
  FacadeStory story(Pool(16, 20));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 50));
  w.Fork(kA, {kB});
  w.Extend(kA, 50 + 64);
  for (uint32_t i = 0; i < 64; ++i) {
    const StepResult answer = w.Must(Batch().Advance(kA, 50 + i, {7000 + i}));
    EXPECT_THAT(answer.runs, SizeIs(0));
    EXPECT_THAT(answer.copies, SizeIs(0));
  }
}

void ExpectNumbers(const Error& error, const std::vector<ErrorDetail>& expected) {
  for (const ErrorDetail& detail : expected) {
    EXPECT_EQ(error.Detail(detail.name), detail.value) << detail.name << " in: " << error.message;
  }
}

TEST(Growth, S29_ShortageNamesTheNumbersAndChangesNothing) {
  FacadeStory story(Pool(16, 10));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 96));
  w.Finish(kA);
  w.Prompt(kB, Text(2, 32));
  const std::vector<Tokens> probes = {Text(1, 97), Text(2, 33)};
  const StateOf before = Snapshot(story.driver(), probes);

  const Error error = w.BeginError(kC, Join(Text(1, 96), Text(3, 48)));
  EXPECT_EQ(error.reason, Reason::kPoolExhausted);
  ExpectNumbers(error, {{"needed", 3},
                        {"free", 2},
                        {"evictable", 0},
                        {"held_by_caller", 2},
                        {"claimed_by_others", 0},
                        {"fenced", 0}});
  EXPECT_EQ(error.Detail("reusable_blocks"), "6") << error.message;
  EXPECT_EQ(Snapshot(story.driver(), probes), before);
}

TEST(Growth, S29_ARefusedBeginIsNoUse) {
  // The younger of two idle prefixes is named by a refused begin; the older still goes first.
  FacadeStory story(Pool(16, 10));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 48));
  w.Finish(kA);
  w.Prompt(kA, Text(2, 48));
  w.Finish(kA);
  w.Prompt(kB, Text(3, 64));
  EXPECT_EQ(w.BeginError(kC, Join(Text(1, 48), Text(4, 112))).reason, Reason::kPoolExhausted);
  w.Begin(kC, Text(5, 16));
  EXPECT_EQ(story.Peek(Text(1, 49)), 32u);
  EXPECT_EQ(story.Peek(Text(2, 49)), 48u);
}

TEST(Growth, S30_OneUnrelatedIdleBlockIsEvictedAndNoMore) {
  FacadeStory story(Pool(16, 10));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 96));
  w.Finish(kA);
  w.Prompt(kA, Text(4, 16));
  w.Finish(kA);
  w.Prompt(kB, Text(2, 16));
  EXPECT_EQ(story.Blocks().free, 2u);
  const BeginResult begun = w.Prompt(kC, Join(Text(1, 96), Text(3, 48)));
  EXPECT_EQ(begun.reused_tokens, 96u);
  EXPECT_EQ(story.Peek(Text(4, 17)), 0u);
  EXPECT_EQ(story.Peek(Text(1, 97)), 96u);
  uint64_t evicted = 0;
  for (const auto& bands : story.driver().Stats().counters.blocks_evicted) {
    for (const uint64_t count : bands) evicted += count;
  }
  EXPECT_EQ(evicted, 1u);
}

TEST(Growth, S31_OneEntryOfAnAdvanceFailsAlone) {
  FacadeStory story(Pool(16, 10));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 80));
  w.Prompt(kB, Text(2, 79));
  const StepResult answer = w.Do(Batch().AdvanceEach({kA, kB}, {80, 79}, {101, 102}));
  ASSERT_THAT(answer.failures, SizeIs(1));
  const OperationFailure& failure = answer.failures[0];
  EXPECT_EQ(failure.entry, 0u);
  EXPECT_EQ(failure.part, AdvancePart::kEnter);
  EXPECT_EQ(failure.reserved, 80u);
  EXPECT_EQ(failure.error.reason, Reason::kPoolExhausted);
  EXPECT_EQ(failure.error.Detail("needed"), "1");
  EXPECT_EQ(w.Length(kA), 80u);
  EXPECT_EQ(w.Length(kB), 80u);

  w.Settle();
  w.Finish(kB);
  w.Must(Batch().Advance(kA, 80, {101}));
  EXPECT_EQ(w.Length(kA), 81u);
}

TEST(Growth, S32_AllOrNothing) {
  FacadeStory story(Pool(4, 12));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 6));
  w.Prompt(kB, Text(2, 8));
  w.Must(Batch().Advance(kA, 6, {101}));
  w.Settle();
  const std::vector<Tokens> probes = {Text(1, 9), Text(2, 9)};
  const StateOf before = Snapshot(story.driver(), probes);

  const StepResult answer = w.Do(Batch()
                                     .Advance(kA, 7, {102}, 8)
                                     .Fork(kB, 8, {kC})
                                     .Truncate(kB, 8, 3)
                                     .Begin(4, Join(Text(2, 8), Text(3, 4)))
                                     .Finish(kA)
                                     .Advance(kB, 99, {103})
                                     .AllOrNothing());
  EXPECT_EQ(ErrorOf(answer, 5).reason, Reason::kLengthMismatch);
  EXPECT_THAT(answer.runs, SizeIs(0));
  EXPECT_THAT(answer.copies, SizeIs(0));
  EXPECT_EQ(Snapshot(story.driver(), probes), before);

  w.Must(Batch().Advance(kA, 7, {102}).Fork(kB, 8, {kC}).AllOrNothing());
  EXPECT_EQ(w.Length(kA), 8u);
  EXPECT_TRUE(w.tables().Has(kC));
}

TEST(Growth, S33_AClaimIsKeptForItsSequence) {
  FacadeStory story(Pool(16, 16));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 16), {.reserve_tokens = 256});
  EXPECT_EQ(story.driver().Stats().claimed_blocks, 15u);
  EXPECT_EQ(w.BeginError(kB, Text(2, 16)).reason, Reason::kPoolExhausted);
  const StateOf before = Snapshot(story.driver());
  EXPECT_FALSE(ErrorOf(w.Do(Batch().Fork(kA, 16, {kC}))).ok()) << "reserve_sequences is 1";
  w.Settle();
  EXPECT_EQ(Snapshot(story.driver()), before);
  for (uint32_t length = 16; length < 256; ++length) {
    w.Must(Batch().Advance(kA, length, {5000 + length}));
  }
  w.Settle();
  EXPECT_EQ(w.Length(kA), 256u);
  EXPECT_EQ(story.Blocks().free, 0u);
  EXPECT_EQ(story.driver().Stats().claimed_blocks, 0u);
}

TEST(Growth, S33_AClaimCoversItsForks) {
  FacadeStory story(Pool(16, 16));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 16), {.reserve_tokens = 64, .reserve_sequences = 2});
  w.Fork(kA, {kB});
  EXPECT_FALSE(ErrorOf(w.Do(Batch().Fork(kA, 16, {kC}))).ok());
  w.Settle();
  const uint64_t claimed = story.driver().Stats().claimed_blocks;
  const auto left = static_cast<uint32_t>(15 - claimed);
  w.Begin(4, Text(2, left * 16));
  for (uint32_t length = 16; length < 64; ++length) {
    w.Must(Batch().AdvanceEach({kA, kB}, {length, length}, {5000 + length, 6000 + length}));
  }
}

TEST(Growth, S34_TheWatermarkBindsBeginsWhileAnotherRuns) {
  EngineOptions options = Pool(16, 100);
  options.watermark = 0.1;
  FacadeStory story(options);
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 160));
  EXPECT_EQ(w.BeginError(kB, Text(2, 81 * 16)).reason, Reason::kPoolExhausted);
  w.Begin(kB, Text(2, 80 * 16));
  EXPECT_EQ(story.Blocks().free, 10u);
  w.Must(Batch().Advance(kA, 160, {101}));
  EXPECT_EQ(story.Blocks().free, 9u);
}

TEST(Growth, S34_TheWatermarkLetsALoneSequenceFillThePool) {
  EngineOptions options = Pool(16, 100);
  options.watermark = 0.1;
  FacadeStory story(options);
  Worker& w = story.Attach("w");
  w.Begin(kA, Text(1, 1600));
  EXPECT_EQ(story.Blocks().free, 0u);
}

TEST(Growth, S65_ASilentWaiterLosesItsTurn) {
  FacadeStory story(Pool(16, 10));
  Worker& elder = story.Attach("elder");
  Worker& younger = story.Attach("younger");
  elder.Prompt(kA, Text(1, 80));
  younger.Prompt(kA, Text(2, 64));
  younger.Prompt(kB, Text(3, 3));
  EXPECT_FALSE(ErrorOf(elder.Do(Batch().Advance(kA, 80, {101}))).ok());
  younger.Finish(kB);
  EXPECT_FALSE(ErrorOf(younger.Do(Batch().Advance(kA, 64, {102}))).ok());
  story.Pass(std::chrono::milliseconds(41));
  younger.Must(Batch().Advance(kA, 64, {102}));
}

// The partial copy would take the block that the elder waits for; whole shared blocks take none.
TEST(Growth, S65_ABeginThatTakesNoBlockPassesTheWaiter) {
  FacadeStory story(Pool(4, 4));
  Worker& elder = story.Attach("elder");
  Worker& younger = story.Attach("younger");
  elder.Prompt(kA, Text(1, 12));
  younger.Prompt(kA, Text(3, 3));
  EXPECT_FALSE(ErrorOf(elder.Do(Batch().Advance(kA, 12, {101}))).ok());
  younger.Finish(kA);
  BeginOptions look;
  look.allocate_tokens = 0;
  EXPECT_EQ(younger.Begin(kB, Join(Text(1, 10), {102}), look).reused_tokens, 8u);
  look.allocate_tokens = 1;
  const Error refused = younger.BeginError(kC, Join(Text(1, 10), {103}), look);
  EXPECT_EQ(refused.Detail("needed"), "1");
  EXPECT_EQ(refused.Detail("waiting_worker"), "elder");
}

}  // namespace
}  // namespace quire::testing
