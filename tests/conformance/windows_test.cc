// Sliding windows: what leaves a table, what a hit needs, what stays in the tree.
#include <array>
#include <vector>

#include "gmock/gmock.h"
#include "tests/conformance/pressure.h"
#include "tests/support/scenario.h"

namespace quire::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::SizeIs;

constexpr SequenceHandle kA = 1;
constexpr SequenceHandle kB = 2;

size_t Left(const Worker& w, SequenceHandle sequence, uint32_t group = 0) {
  return w.Table(sequence, group).size() - w.Held(sequence, group);
}

TEST(Windows, S49_BlocksLeaveBehindTheCommittedLength) {
  FacadeStory story(PoolOfWindows(2, 40, {4}, 40));
  Worker& w = story.Attach("w");
  w.Begin(kA, Text(1, 11));
  const std::vector<std::pair<uint32_t, size_t>> left = {{3, 0}, {4, 0}, {5, 1},
                                                         {6, 1}, {7, 2}, {11, 4}};
  for (const auto& [committed, blocks] : left) {
    w.Commit(kA, committed);
    EXPECT_EQ(Left(w, kA), blocks) << "committed " << committed;
    w.ExpectConsistent();
  }
  EXPECT_EQ(story.Blocks().idle, 4u);
}

TEST(Windows, S49_WhatLeftIsFoundByANewcomer) {
  FacadeStory story(PoolOfWindows(2, 40, {4}, 40));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 11));
  for (const uint32_t shared : {2u, 4u, 6u, 10u}) {
    EXPECT_EQ(w.Begin(kB, Join(Text(1, shared), Text(2, 3))).reused_tokens, shared);
    w.Finish(kB);
  }
}

TEST(Windows, S49_SlackKeepsABlockLonger) {
  EngineOptions options = PoolOfWindows(2, 40, {4}, 40);
  options.window_slack_tokens = 3;
  FacadeStory story(options);
  Worker& w = story.Attach("w");
  w.Begin(kA, Text(1, 11));
  for (const auto& [committed, blocks] :
       std::vector<std::pair<uint32_t, size_t>>{{7, 0}, {8, 1}, {9, 1}, {10, 2}}) {
    w.Commit(kA, committed);
    EXPECT_EQ(Left(w, kA), blocks) << "committed " << committed;
  }
}

TEST(Windows, S50_TheLongestHitThatOneWindowAccepts) {
  const auto hit = [](const std::array<bool, 12>& resident) {
    return LongestWindowHit(resident, 4, 2);
  };
  EXPECT_EQ(hit({1, 1, 0, 1, 0, 0, 1, 1, 0, 1, 1, 1}), 12u);
  EXPECT_EQ(hit({1, 1, 0, 1, 0, 0, 1, 1, 0, 1, 0, 0}), 8u);
  EXPECT_EQ(hit({1, 1, 0, 1, 0, 0, 1, 1, 0, 1, 0, 1}), 8u);
  EXPECT_EQ(hit({1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}), 1u);
  EXPECT_EQ(hit({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}), 0u);
}

TEST(Windows, S51_AHitNeedsTheWindowBehindIt) {
  FacadeStory story(PoolOfWindows(2, 40, {0, 4}, 40));
  Worker& w = story.Attach("w");
  const Tokens text = Text(1, 20);
  w.Prompt(kA, Text(1, 2));
  // Token by token, so that the window blocks leave one after another.
  w.Generate(kA, Tokens(text.begin() + 2, text.end()));
  w.Commit(kA, 20);
  EXPECT_EQ(w.Held(kA, 0), 10u);
  EXPECT_EQ(w.Held(kA, 1), 2u);
  EXPECT_EQ(story.Blocks().idle, 8u);

  const auto found = [&](uint32_t length) { return story.Peek(Join(Text(1, length), Text(2, 2))); };
  Pressure pressure(story, w);
  pressure.TakeFree();
  // Each turn needs one block per group and so evicts two window blocks, the first of the prompt
  // first. A hit of 10 needs the blocks 3 and 4, a hit of 14 the blocks 5 and 6.
  const std::vector<std::array<uint32_t, 2>> expected = {{10, 14}, {0, 14}, {0, 0}, {0, 0}};
  for (const auto& [of_ten, of_fourteen] : expected) {
    pressure.TakeOne();
    EXPECT_EQ(found(10), of_ten);
    EXPECT_EQ(found(14), of_fourteen);
    EXPECT_EQ(found(20), 20u) << "what was lost lies before the last window";
  }
  EXPECT_EQ(story.Blocks().idle, 0u);
}

TEST(Windows, S51_AHitIsTheLongestThatAllGroupsAccept) {
  FacadeStory story(PoolOfWindows(2, 60, {0, 4, 8}, 40));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 20));
  w.Finish(kA);
  const StepResult answer = w.Must(Batch().Begin(kB, Join(Text(1, 20), Text(2, 2))));
  EXPECT_EQ(answer.begins.at(0).reused_tokens, 20u);
  EXPECT_EQ(w.Held(kB, 0), 11u);
  EXPECT_EQ(w.Held(kB, 1), 3u) << "positions 17 to 19 lie in two blocks, one is new";
  EXPECT_EQ(w.Held(kB, 2), 5u) << "positions 13 to 19 lie in four blocks, one is new";
  w.Commit(kB, 22);
}

TEST(Windows, S52_EqualBlocksForLayersOfDifferentWindows) {
  std::vector<uint32_t> layer_windows(18, 1024);
  for (const size_t full : {5u, 11u, 17u}) layer_windows[full] = 0;
  const auto plan = PlanGroups(layer_windows);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->layers_per_block, 3u);
  EXPECT_THAT(plan->groups, SizeIs(6));
  EXPECT_THAT(plan->groups, Each(Field(&GroupSpec::layers, SizeIs(3))));
  EXPECT_THAT(plan->padding_layers, Each(0u));

  EngineOptions options = PoolOfWindows(16, 4000, {}, 10'000);
  options.groups = plan->groups;
  FacadeStory story(options);
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 10'000));
  EXPECT_EQ(w.Held(kA, 0), 625u);
  for (uint32_t group = 1; group < 6; ++group) EXPECT_EQ(w.Held(kA, group), 64u);
  EXPECT_EQ(story.Held(), 625u + 5 * 64);
  EXPECT_EQ(story.Blocks().free + story.Blocks().idle, 4000u - 625 - 5 * 64);
  EXPECT_GE(story.Blocks().idle + story.Blocks().free, 5u * 561);
}

// Its cached content was taken out: what left its table is nobody's any more.
TEST(Windows, E10_TruncateOfATaintedSequenceBringsNothingBack) {
  EngineOptions options = PoolOfWindows(2, 20, {0, 3}, 16);
  options.window_slack_tokens = 2;
  FacadeStory story(options);
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 8));
  EXPECT_EQ(Left(w, kA, 1), 2u);
  story.driver().Flush();
  EXPECT_EQ(ErrorOf(w.Do(Batch().Truncate(kA, 8, 5))).reason, Reason::kWindowLost);
  w.Must(Batch().Truncate(kA, 8, 6));
  EXPECT_EQ(Left(w, kA, 1), 2u);
  EXPECT_EQ(w.View(kA).groups.at(1).blocks.at(1), kNoBlock);
}

// Its full block was taken, so that no hit can use the window block of the prompt's end.
void LeaveADeadBlock(Story& story, Worker& w) {
  w.Prompt(kA, Text(1, 4));
  w.Finish(kA);
  w.Begin(kB, Text(2, 1));
  w.Finish(kB);
  EXPECT_EQ(story.Blocks().dead, 1u);
  EXPECT_EQ(story.Blocks().idle, 3u);
}

TEST(Windows, E10_AFlushFreesDeadBlocksToo) {
  FacadeStory story(PoolOfWindows(2, 5, {0, 4}, 4));
  Worker& w = story.Attach("w");
  LeaveADeadBlock(story, w);
  EXPECT_EQ(story.driver().Flush(), 3u);
  EXPECT_EQ(story.Blocks().free, 5u);
}

// One that its worker's release still fences is free with the others.
TEST(Windows, E10_AFlushLeavesNoFencedDeadBlock) {
  FacadeStory story(PoolOfWindows(2, 5, {0, 4}, 4));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 4));
  w.Must(Batch().Finish(kA).Begin(kB, Text(2, 1)));
  EXPECT_EQ(story.Blocks().dead, 1u);
  story.driver().Flush();
  EXPECT_EQ(story.Blocks().dead, 0u);
  EXPECT_EQ(story.Blocks().fenced, 3u);
  w.Settle();
  EXPECT_EQ(story.Blocks().free, 3u);
}

TEST(Windows, P11_NothingOfAWorkersOwnMemoryOutlivesIt) {
  EngineOptions options = PoolOfWindows(2, 5, {0, 4}, 4);
  options.memory = PoolMemoryKind::kWorker;
  FacadeStory story(options);
  Worker& w = story.Attach("w");
  LeaveADeadBlock(story, w);
  const Tokens prompt = Text(1, 2);
  EXPECT_TRUE(
      story.engine().PinPrefix({.tokens = prompt}, "operator", std::chrono::minutes(1)).ok());
  EXPECT_TRUE(story.engine().EndWorker("w").ok());
  story.Forget(w);
  EXPECT_EQ(story.Blocks().free, 5u);
}

// The full block of the leaf could be taken, the window block that the leaf needs could not.
TEST(Windows, E1_AWindowBlockThatAPendingLeafNeedsDoesNotCount) {
  FacadeStory story(PoolOfWindows(16, 11, {0, 44}, 80));
  Worker& w = story.Attach("w");
  w.Must(Batch().Begin(kA, Text(1, 46)));
  w.Must(Batch().Commit(kA, 46, 46));
  EXPECT_THAT(story.driver().Audit(false).findings, SizeIs(0));
  const StepResult answer = w.Must(Batch().Truncate(kA, 46, 6));
  EXPECT_EQ(answer.pool.evictable, 1u);
}

// A block that takes the place of a lost one in a later step is public when that one is complete.
TEST(Windows, P5_ATakenOverWindowBlockWaitsForItsOwnStep) {
  FacadeStory story(PoolOfWindows(2, 9, {0, 2}, 8));
  Worker& w = story.Attach("w");
  w.Must(Batch().Begin(kA, Text(1, 5)));
  w.Must(Batch().Commit(kA, 5, 5));
  const StepNumber sealed = w.last_sent();
  // Takes the window block that left the table of A.
  w.Must(Batch().Begin(kB, Text(1, 3), {.skip_cache_read = true}));
  w.Must(Batch().Commit(kB, 3, 3));
  w.Complete(sealed);
  w.Must(Batch());
  EXPECT_EQ(story.Peek(Text(1, 3)), 0u);
  w.Settle();
  EXPECT_EQ(story.Peek(Text(1, 3)), 2u);
}

// Where no group sees everything, a block may go before its step is complete and others stay below.
TEST(Windows, P5_WhatIsPublicIsFoundBehindABlockThatWentBefore) {
  FacadeStory story(PoolOfWindows(2, 4, {4}, 10));
  Worker& w = story.Attach("w");
  w.Must(Batch().Begin(kA, Text(1, 8)));
  w.Must(Batch().Commit(kA, 8, 8));
  ASSERT_EQ(Left(w, kA), 2u);
  // Takes the two blocks that left the window.
  w.Must(Batch().Begin(kB, Text(2, 4)));
  w.Settle();
  EXPECT_EQ(story.Peek(Join(Text(1, 8), Text(3, 1))), 8u);
}

}  // namespace
}  // namespace quire::testing
