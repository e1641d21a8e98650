// Blocks that only seem to be there: behind held leaves, above promised blocks, in other tables.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/support/scenario.h"

namespace quire::testing {
namespace {

constexpr SequenceHandle kA = 1;
constexpr SequenceHandle kB = 2;
constexpr SequenceHandle kC = 3;
constexpr SequenceHandle kD = 4;

// The last use of a truncated table may be in the slack of its window, where blocks may be missing.
TEST(PromisesUnderPressure, ATruncateAfterAFlushTakesNoSlackBack) {
  EngineOptions options = PoolOfWindows(2, 40, {0, 4}, 40);
  options.window_slack_tokens = 4;
  FacadeStory story(options);
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 12));
  ASSERT_EQ(w.Table(kA, 1)[1], kNoBlock);
  story.engine().Flush();
  w.Truncate(kA, 9);
  EXPECT_EQ(w.Table(kA, 1)[1], kNoBlock);
  w.ExpectConsistent();
  story.ExpectSound();
}

TEST(PromisesUnderPressure, AWindowBlockBehindAHeldLeafIsNotEvictable) {
  // A's first window block has left its table, but whoever finds A's first block needs it.
  FacadeStory story(PoolOfWindows(4, 5, {0, 3}, 8));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 7));
  ASSERT_EQ(w.Table(kA, 1)[0], kNoBlock);
  const Error refused = w.BeginError(kB, Text(2, 1));
  EXPECT_EQ(refused.reason, Reason::kPoolExhausted);
  EXPECT_EQ(refused.Detail("evictable"), "0");
  story.ExpectSound();
  w.Finish(kA);
  w.Begin(kB, Text(2, 1));
  story.ExpectSound();
}

// Who takes what it released itself uncovers the held block above, which needs its window then.
TEST(PromisesUnderPressure, AFencedBlockHidesNoHeldLeafAboveIt) {
  for (const std::vector<uint32_t>& windows : {std::vector<uint32_t>{6}, {0, 6}}) {
    const auto groups = static_cast<uint32_t>(windows.size());
    // Three blocks of the prompt and one of B in each group, and a free one if there are two.
    FacadeStory story(PoolOfWindows(4, 5 * groups - 1, windows, 16));
    Worker& w = story.Attach("w");
    Worker& v = story.Attach("v");
    w.Prompt(kA, Text(1, 12));
    v.Prompt(kB, Join(Text(1, 8), Text(3, 2)));
    ASSERT_EQ(v.Table(kB, groups - 1)[0], kNoBlock);
    // Only w may take the prompt's last block, which is to go before its first.
    w.Send(Batch().Finish(kA, false, {{8, 12, 0, {}}}).Begin(kC, Text(4, 8)));
    const StepResult answer = w.ApplyNext();
    ASSERT_EQ(answer.failures.size(), 1u);
    const Error& refused = answer.failures[0].error;
    EXPECT_EQ(refused.reason, Reason::kPoolExhausted);
    EXPECT_EQ(refused.Detail("needed"), std::to_string(2 * groups));
    EXPECT_EQ(refused.Detail("evictable"), "1");
    story.ExpectSound();
    w.Begin(kC, Text(4, 4));
  }
}

TEST(PromisesUnderPressure, APathOutlivesItsBlocksWhileASequenceStandsOnIt) {
  // No group sees everything: all blocks of A's path may have left the window and been evicted.
  FacadeStory story(PoolOfWindows(4, 3, {3}, 16));
  Worker& w = story.Attach("w");
  w.Begin(kA, Text(1, 12), {.allocate_tokens = 7});
  w.Commit(kA, 7);
  w.Begin(kB, Text(2, 8));
  w.Finish(kB);
  story.ExpectSound();
  w.Extend(kA, 9);
  w.Commit(kA, 9);
  story.ExpectSound();
  EXPECT_EQ(story.Peek(Join(Text(1, 8), Text(3, 1))), 8u);
  w.Finish(kA, /*drop=*/true);
  story.ExpectSound();
  story.engine().Flush();
  EXPECT_EQ(story.Blocks().free, 3u);
}

TEST(PromisesUnderPressure, AClaimTakesBackOnlyWhatComesFree) {
  FacadeStory story(Pool(4, 10));
  Worker& w = story.Attach("w");
  Worker& v = story.Attach("v");
  w.Prompt(kA, Text(1, 16), {.reserve_tokens = 32});
  v.Begin(kB, Join(Text(1, 16), Text(2, 1)));
  // B goes on holding all that A lets go.
  w.Truncate(kA, 0);
  story.ExpectSound();
  EXPECT_EQ(v.BeginError(kC, Text(3, 1)).reason, Reason::kPoolExhausted);
  v.Finish(kB);
  w.Extend(kA, 32);
  story.ExpectSound();
}

TEST(PromisesUnderPressure, OwnBlocksAbovePromisedOnesCanBeTaken) {
  FacadeStory story(Pool(4, 6));
  Worker& w = story.Attach("w");
  Worker& v = story.Attach("v");
  w.Prompt(kA, Text(1, 8));
  w.Begin(kB, Join(Text(1, 4), Text(2, 1)));
  w.Finish(kA);
  // All that is open to everybody, the second block of A's prompt too, is promised to v.
  v.Begin(kA, Text(3, 1), {.reserve_tokens = 16});
  EXPECT_EQ(story.driver().Stats().claimed_blocks, 3u);
  // The blocks that B lets go serve w at once; the first block of the prompt is one of them.
  w.Must(Batch().Finish(kB).Begin(kC, Text(4, 8)));
  EXPECT_EQ(w.Held(kC), 2u);
  story.ExpectSound();
  v.Extend(kA, 16);
  EXPECT_EQ(v.Held(kA), 4u);
  story.ExpectSound();
}

// What a worker's own releases fence is no substitute for a block that others may have to take.
TEST(PromisesUnderPressure, AHitTakesNoBlockThatBacksAClaim) {
  FacadeStory story(Pool(4, 7));
  Worker& w = story.Attach("w");
  Worker& v = story.Attach("v");
  w.Prompt(kA, Text(1, 8));
  w.Finish(kA);
  w.Begin(kB, Text(2, 12));
  // All that is open to everybody, the prompt's two idle blocks too, is promised to v.
  v.Begin(kA, Text(3, 1), {.reserve_tokens = 16});
  EXPECT_EQ(story.driver().Stats().claimed_blocks, 3u);
  // w computes the prompt again in the three blocks that only it may have yet.
  w.Send(Batch().Finish(kB).Begin(kC, Text(1, 8)).Begin(kD, Text(4, 4)));
  EXPECT_TRUE(w.ApplyNext().failures.empty());
  story.ExpectSound();
  v.Extend(kA, 16);
  EXPECT_EQ(v.Held(kA), 4u);
}

TEST(PromisesUnderPressure, APromiseOutlivesAFenceOfAnother) {
  FacadeStory story(Pool(4, 6));
  Worker& w = story.Attach("w");
  Worker& v = story.Attach("v");
  v.Prompt(kA, Text(1, 4));
  v.Finish(kA);
  v.Begin(kB, Text(1, 4), {.skip_cache_read = true});
  w.Begin(kA, Text(3, 1), {.reserve_tokens = 20});
  EXPECT_EQ(story.driver().Stats().claimed_blocks, 4u);
  // v's table turns to the idle block, and v's own waits for v.
  v.Send(Batch().Commit(kB, 4, 4));
  v.ApplyNext();
  w.Extend(kA, 16);
  EXPECT_EQ(story.driver().Stats().claimed_blocks, 1u);
  // v may take its own block neither before its completion nor with it.
  EXPECT_FALSE(v.Do(Batch().Begin(kC, Text(4, 1))).failures.empty());
  EXPECT_EQ(v.BeginError(kC, Text(4, 1)).reason, Reason::kPoolExhausted);
  w.Extend(kA, 20);
  EXPECT_EQ(w.Held(kA), 5u);
}

TEST(PromisesUnderPressure, WhatAClaimLostComesBackBeforeAnybodyTakesIt) {
  FacadeStory story(Pool(4, 6));
  Worker& w = story.Attach("w");
  Worker& v = story.Attach("v");
  v.Prompt(kA, Join(Text(1, 2), Text(5, 2)));
  v.Finish(kA);
  // A copy of two tokens, incomplete; meanwhile w makes the whole content public.
  v.Send(Batch().Begin(kB, Text(1, 4)));
  EXPECT_EQ(v.ApplyNext().copies.size(), 1u);
  w.Prompt(kB, Text(1, 4));
  w.Finish(kB);
  w.Begin(kA, Text(3, 1), {.reserve_tokens = 16});
  EXPECT_EQ(story.driver().Stats().claimed_blocks, 3u);
  // v's table turns to the idle block; its own is held by the copy still.
  v.Send(Batch().Commit(kB, 4, 4));
  v.ApplyNext();
  EXPECT_EQ(story.driver().Stats().claimed_blocks, 2u);
  story.ExpectSound();
  // The copy's two blocks come free, of which one is owed.
  v.Complete(v.applied());
  EXPECT_FALSE(v.Do(Batch().Begin(kC, Text(4, 8))).failures.empty());
  EXPECT_EQ(story.driver().Stats().claimed_blocks, 3u);
  v.Begin(kC, Text(4, 4));
  w.Extend(kA, 16);
  EXPECT_EQ(w.Held(kA), 4u);
}

// Taking a held end out makes the block above it a leaf, which needs its window from now on; but
// what is promised is worth more.
TEST(PromisesUnderPressure, ClaimsOutliveContentThatIsTakenOut) {
  FacadeStory story(PoolOfWindows(4, 9, {0, 6}, 16));
  Worker& w = story.Attach("w");
  Worker& v = story.Attach("v");
  w.Prompt(kA, Text(1, 12));
  ASSERT_EQ(w.Table(kA, 1)[0], kNoBlock);
  v.Begin(kA, Text(3, 1), {.reserve_tokens = 8});
  EXPECT_EQ(story.driver().Stats().claimed_blocks, 2u);
  const Tokens prompt = Text(1, 12);
  EXPECT_EQ(
      story.driver().EvictPrefix({.model_fingerprint = "model", .tokens = prompt}).value_or(0), 2u);
  EXPECT_EQ(story.driver().Stats().claimed_blocks, 2u);
  EXPECT_EQ(story.Blocks().free, 2u);
  story.ExpectSound();
  v.Extend(kA, 8);
  EXPECT_EQ(v.Held(kA), 2u);
}

// The block that leaves the window is in that of the last sealed block, until the next is sealed.
TEST(PromisesUnderPressure, AClaimInAWindowKeepsNoBlockOfItsOwnFromItself) {
  FacadeStory story(PoolOfWindows(4, 9, {0, 6}, 24));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 4), {.reserve_tokens = 24});
  // Six blocks, and in the window group what six and four tokens hold: three.
  EXPECT_EQ(story.driver().Stats().claimed_blocks, 7u);
  w.Extend(kA, 8);
  for (uint32_t length = 4; length < 24; ++length) {
    w.Must(Batch().Advance(kA, length, {7}, std::min(3u, 23 - length)));
    w.Settle();
    story.ExpectSound();
  }
  EXPECT_EQ(w.Length(kA), 24u);
}

TEST(PromisesUnderPressure, AClaimCoversTheSlackOfAWindow) {
  EngineOptions options = PoolOfWindows(2, 12, {2}, 16);
  options.window_slack_tokens = 4;
  FacadeStory story(options);
  Worker& w = story.Attach("w");
  // Two tokens, one before them and four of slack lie in at most four blocks.
  w.Prompt(kA, Text(1, 2), {.reserve_tokens = 16});
  EXPECT_EQ(story.driver().Stats().claimed_blocks, 3u);
}

// A truncated sequence gets blocks back like a hit.
TEST(PromisesUnderPressure, ATruncateTakesBackNoBlockThatIsPromised) {
  FacadeStory story(PoolOfWindows(2, 14, {0, 4}, 12));
  Worker& w = story.Attach("w");
  Worker& v = story.Attach("v");
  w.Prompt(kA, Text(1, 12));
  w.Fork(kA, {kB});
  v.Begin(kA, Text(3, 1), {.reserve_tokens = 6});
  // Four blocks that left the window of A's prompt are all there is.
  EXPECT_EQ(story.driver().Stats().claimed_blocks, 4u);
  const Error refused = ErrorOf(w.Do(Batch().Truncate(kA, 12, 6)));
  EXPECT_EQ(refused.reason, Reason::kPoolExhausted);
  EXPECT_EQ(refused.Detail("needed"), "2");
  EXPECT_EQ(w.Length(kA), 12u);
  EXPECT_EQ(story.driver().Stats().claimed_blocks, 4u);
  story.ExpectSound();
  // Once it alone holds its end, it gives more than it takes.
  w.Finish(kB);
  w.Truncate(kA, 6);
  EXPECT_EQ(story.driver().Stats().claimed_blocks, 4u);
  v.Extend(kA, 6);
  story.ExpectSound();
}

// What one takes beyond window and chunk it does not take from the promise to its forks.
TEST(PromisesUnderPressure, AMemberOfAClaimTakesNoMoreThanItsShare) {
  FacadeStory story(PoolOfWindows(2, 8, {4}, 32));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 2), {.reserve_tokens = 32, .reserve_sequences = 2});
  // Each: two tokens and three before them, in at most three blocks.
  EXPECT_EQ(story.driver().Stats().claimed_blocks, 5u);
  EXPECT_FALSE(w.Do(Batch().Extend(kA, 2, 14)).failures.empty());
  w.Extend(kA, 10);
  EXPECT_EQ(story.driver().Stats().claimed_blocks, 3u);
  w.Fork(kA, {kB});
  w.Extend(kB, 6);
  EXPECT_EQ(w.Held(kB), 3u);
}

TEST(PromisesUnderPressure, ACopyIsTakenFromItsOwnPromise) {
  FacadeStory story(Pool(4, 5));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 8), {.reserve_tokens = 12});
  w.Begin(kB, Text(2, 1), {.reserve_tokens = 8});
  w.Truncate(kA, 6);
  EXPECT_EQ(story.driver().Stats().claimed_blocks, 2u);
  // A's last block is sealed, and stays while it is copied.
  w.Send(Batch().Extend(kA, 6, 8).Extend(kB, 1, 8));
  EXPECT_TRUE(w.ApplyNext().failures.empty());
  EXPECT_EQ(story.driver().Stats().claimed_blocks, 0u);
  w.Settle();
  EXPECT_EQ(story.driver().Stats().claimed_blocks, 1u);
  w.Extend(kA, 12);
  EXPECT_EQ(w.Held(kA), 3u);
}

}  // namespace
}  // namespace quire::testing
