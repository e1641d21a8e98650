// Numbered steps, what others see of them, and when a block may change hands.
#include <chrono>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/conformance/served_scenario.h"
#include "tests/support/scenario.h"

namespace quire::testing {
namespace {

using ::testing::SizeIs;

constexpr SequenceHandle kA = 1;
constexpr SequenceHandle kB = 2;

// Sends the steps 1 to 6 and leaves 7, 8 and 9 in flight; returns their batches.
std::vector<Batch> ThreeInFlight(Worker& w) {
  w.Must(Batch().Begin(kA, Text(1, 20)));
  w.Must(Batch().Commit(kA, 20, 20));
  while (w.last_sent() < 6) w.Must(Batch().Advance(kA, w.Length(kA), {101}));
  const uint32_t length = w.Length(kA);
  const std::vector<Batch> batches = {Batch().Advance(kA, length, {107}, 20),
                                      Batch().Begin(kB, Text(2, 33)),
                                      Batch().Advance(kA, length + 1, {109}).Finish(99)};
  for (const Batch& batch : batches) EXPECT_TRUE(w.Send(batch).ok());
  return batches;
}

TEST_P(WorkersAndSteps, S53_ResentStepsGetTheStoredAnswers) {
  Story story(Serve(Pool(16, 20)));
  Worker& w = story.Attach("w");
  const std::vector<Batch> batches = ThreeInFlight(w);
  const StateOf before = Snapshot(story.driver());
  story.driver().BreakStream(w.lease());

  std::vector<StepResult> resent;
  for (StepNumber step = 7; step <= 9; ++step) {
    const auto answer = story.driver().Step(w.ParamsFor(batches[step - 7], step));
    ASSERT_TRUE(answer.ok()) << answer.status();
    resent.push_back(*answer);
  }
  EXPECT_EQ(Snapshot(story.driver()), before);
  for (const StepResult& again : resent) EXPECT_EQ(w.ApplyNext(), again);
  w.Settle();
}

TEST_P(WorkersAndSteps, S53_ARepeatWithOtherContentIsInvalid) {
  Story story(Serve(Pool(16, 20)));
  Worker& w = story.Attach("w");
  const std::vector<Batch> batches = ThreeInFlight(w);
  const StateOf before = Snapshot(story.driver());
  const std::vector<Batch> others = {Batch(), Batch().Finish(kA), batches[1],
                                     Batch().Advance(kA, w.Length(kA), {108}, 20),
                                     Batch().Advance(kA, w.Length(kA), {107}, 19)};
  for (const Batch& other : others) {
    const auto answer = story.driver().Step(w.ParamsFor(other, 7));
    EXPECT_EQ(ReasonOf(answer.status()), Reason::kInvalidArgument);
  }
  EXPECT_EQ(Snapshot(story.driver()), before);
  w.Settle();
}

TEST_P(WorkersAndSteps, S53_AStepOutOfOrderNamesTheExpectedOne) {
  Story story(Serve(Pool(16, 20)));
  Worker& w = story.Attach("w");
  ThreeInFlight(w);
  const StateOf before = Snapshot(story.driver());
  const auto answer = story.driver().Step(w.ParamsFor(Batch(), 11));
  EXPECT_EQ(ReasonOf(answer.status()), Reason::kStepOutOfOrder);
  EXPECT_EQ(FromStatus(answer.status()).Detail("expected_step"), "10");
  EXPECT_EQ(Snapshot(story.driver()), before);
  w.Settle();
}

enum class Report { kEmptyStep, kRenewal };

void PublishesOn(Story& story, Report report) {
  Worker& a = story.Attach("a");
  Worker& b = story.Attach("b");
  a.Must(Batch().Begin(kA, Text(1, 48)));
  a.Must(Batch().Commit(kA, 48, 48));
  EXPECT_EQ(story.Blocks().pending, 3u);
  EXPECT_EQ(b.Begin(kA, Text(1, 48)).reused_tokens, 0u) << "pending content is A's alone";
  EXPECT_EQ(a.Must(Batch().Begin(kB, Text(1, 48))).begins.at(0).reused_tokens, 47u);
  b.Finish(kA);

  a.Complete(2);
  if (report == Report::kRenewal) {
    EXPECT_TRUE(a.Renew().ok());
  } else {
    a.Must(Batch());
  }
  EXPECT_EQ(story.Blocks().referenced, 3u);
  EXPECT_EQ(b.Begin(kA, Text(1, 48)).reused_tokens, 47u);
  a.Settle();
}

TEST_P(WorkersAndSteps, S54_ContentBecomesPublicWithTheReportOfAnEmptyStep) {
  Story story(Serve(Pool(16, 20)));
  PublishesOn(story, Report::kEmptyStep);
}

TEST_P(WorkersAndSteps, S54_ContentBecomesPublicWithARenewal) {
  Story story(Serve(Pool(16, 20)));
  PublishesOn(story, Report::kRenewal);
}

TEST_P(WorkersAndSteps, S54_TheSecondToCompleteIsRemapped) {
  Story story(Serve(Pool(16, 20)));
  Worker& a = story.Attach("a");
  Worker& b = story.Attach("b");
  for (Worker* w : {&a, &b}) {
    w->Must(Batch().Begin(kA, Text(1, 48)));
    w->Must(Batch().Commit(kA, 48, 48));
  }
  EXPECT_EQ(story.Blocks().pending, 6u);
  a.Settle();
  EXPECT_NE(b.Table(kA), a.Table(kA));
  b.Must(Batch());
  EXPECT_NE(b.Table(kA), a.Table(kA)) << "B has reported nothing yet";

  const StepResult remapped = b.Settle();
  EXPECT_THAT(remapped.blocks, SizeIs(3));
  EXPECT_EQ(b.Table(kA), a.Table(kA));
  EXPECT_EQ(story.Blocks().free, 14u) << "both copies are held until that step is complete";
  b.Settle();
  EXPECT_EQ(story.Blocks().free, 17u);
  EXPECT_EQ(story.Blocks().referenced, 3u);
}

// Worker A frees its only block in step 5; nothing else is free.
void FreesInStepFive(Worker& a) {
  a.Must(Batch().Begin(kA, Text(1, 3)));
  for (uint32_t length = 3; length < 6; ++length) a.Must(Batch().Advance(kA, length, {100}));
  ASSERT_EQ(a.last_sent(), 4u);
  a.Must(Batch().Finish(kA));
}

TEST_P(WorkersAndSteps, S55_AReleasedBlockChangesHandsAfterItsStepIsComplete) {
  Story story(Serve(Pool(16, 2)));
  Worker& a = story.Attach("a");
  Worker& b = story.Attach("b");
  b.Begin(kB, Text(2, 3));
  FreesInStepFive(a);
  a.Complete(4);
  EXPECT_EQ(a.Must(Batch()).pool, (PoolCounts{1, 0, 0})) << "A could have it";
  const StepResult refused = b.Do(Batch().Begin(kA, Text(3, 3)));
  EXPECT_EQ(ErrorOf(refused).reason, Reason::kPoolExhausted);
  EXPECT_EQ(ErrorOf(refused).Detail("fenced"), "1");
  EXPECT_EQ(refused.pool, (PoolCounts{0, 0, 1}));

  a.Complete(5);
  a.Must(Batch());
  b.Must(Batch().Begin(kA, Text(3, 3)));
}

TEST_P(WorkersAndSteps, S55_TheReleasingWorkerHasItAtOnce) {
  Story story(Serve(Pool(16, 2)));
  Worker& a = story.Attach("a");
  Worker& b = story.Attach("b");
  b.Begin(kB, Text(2, 3));
  FreesInStepFive(a);
  a.Complete(4);
  a.Must(Batch().Begin(kB, Text(4, 3)));
  EXPECT_EQ(story.Blocks().free, 0u);
}

// True if `w` could begin a sequence of `blocks` fresh blocks now. Tries it in a step that as a
// whole does not happen.
bool CouldBegin(Worker& w, uint32_t blocks) {
  const StepResult answer =
      w.Do(Batch().Begin(77, Text(7, blocks * 16)).Finish(/*sequence=*/99).AllOrNothing());
  EXPECT_FALSE(answer.failures.empty());
  return ErrorOf(answer, 0).ok();
}

void ExpectCanGet(Worker& w, uint32_t free, uint32_t evictable) {
  const PoolCounts seen = w.Must(Batch()).pool;
  EXPECT_EQ(seen.free, free) << w.name();
  EXPECT_EQ(seen.evictable, evictable) << w.name();
  EXPECT_EQ(seen.fenced, 3 - free - evictable) << w.name();
  EXPECT_TRUE(CouldBegin(w, free + evictable)) << w.name();
  if (free + evictable < 3) {
    EXPECT_FALSE(CouldBegin(w, free + evictable + 1)) << w.name();
  }
}

// A and B both used the idle block of text 1, and each had a block of its own.
void LetGoOfASharedBlock(Worker& a, Worker& b) {
  a.Prompt(kA, Text(1, 16));
  a.Finish(kA);
  EXPECT_EQ(a.Begin(kA, Text(1, 17)).reused_tokens, 16u);
  EXPECT_EQ(b.Begin(kA, Text(1, 17)).reused_tokens, 16u);
  a.Must(Batch().Finish(kA));
  b.Must(Batch().Finish(kA));
}

TEST_P(WorkersAndSteps, S55_AnIdleBlockThatBothUsedWaitsForBoth) {
  Story story(Serve(Pool(16, 3)));
  Worker& a = story.Attach("a");
  Worker& b = story.Attach("b");
  LetGoOfASharedBlock(a, b);
  ExpectCanGet(a, 1, 0);
  ExpectCanGet(b, 1, 0);
  b.Settle();
  ExpectCanGet(a, 2, 1);
  ExpectCanGet(b, 1, 0);
  a.Settle();
  ExpectCanGet(a, 2, 1);
  ExpectCanGet(b, 2, 1);
  EXPECT_EQ(story.Peek(Text(1, 17)), 16u);
}

TEST_P(WorkersAndSteps, S57_EqualAndLowerIncarnations) {
  Story story(Serve(Pool(16, 10)));
  Worker& w = story.Attach("w", 5);
  w.Prompt(kA, Text(1, 20));
  const StateOf before = Snapshot(story.driver());
  const auto again = story.driver().Attach(w.params());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->lease, w.lease());
  EXPECT_EQ(again->lease_number, w.attached().lease_number);
  EXPECT_EQ(again->expected_step, w.last_sent() + 1);
  EXPECT_TRUE(again->resumed);

  AttachParams lower = w.params();
  lower.incarnation = 4;
  EXPECT_EQ(ReasonOf(story.driver().Attach(lower).status()), Reason::kStaleIncarnation);
  EXPECT_EQ(Snapshot(story.driver()), before);
  w.Advance(kA, 101);
}

TEST_P(WorkersAndSteps, S60_WhatRunsGoesOnAndNothingBegins) {
  Story story(Serve(Pool(16, 20)));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 48));
  PrefixSelector prefix;
  prefix.tokens = w.tables().At(kA).tokens;
  ASSERT_TRUE(story.driver().PinPrefix(prefix, "operator", std::chrono::seconds(100)).ok());
  EXPECT_EQ(story.driver().StartDraining(), 1u);

  EXPECT_THAT(story.driver().ListPins(), SizeIs(0));
  EXPECT_EQ(w.BeginError(kB, Text(2, 16)).reason, Reason::kDraining);
  const auto attached = story.driver().Attach(AttachAs("x"));
  EXPECT_EQ(ReasonOf(attached.status()), Reason::kDraining);
  w.Fork(kA, {kB});
  w.Extend(kA, 60);
  w.Advance(kB, 101);
  w.Truncate(kB, 40);
  EXPECT_TRUE(w.Renew().ok());
  w.Finish(kB);
  w.Finish(kA);
  EXPECT_EQ(story.driver().Stats().sequences, 0u);
}

}  // namespace
}  // namespace quire::testing
