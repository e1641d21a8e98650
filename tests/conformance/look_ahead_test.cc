// Look-ahead, chunked prefill and claims.
#include <vector>

#include "gmock/gmock.h"
#include "tests/support/scenario.h"

namespace quire::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr SequenceHandle kA = 1;
constexpr SequenceHandle kX = 2;
constexpr SequenceHandle kB = 3;
constexpr SequenceHandle kC = 4;

TEST(LookAhead, S69_StepsInsideTheLookAheadReturnNoBlock) {
  FacadeStory story(Pool(4, 10));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 6));
  w.Extend(kA, 9);
  EXPECT_THAT(w.Table(kA), SizeIs(3));
  for (uint32_t i = 0; i < 4; ++i) {
    const StepResult answer = w.Must(Batch().Advance(kA, 6 + i, {100 + i}, 3));
    const SequenceView view = w.View(kA);
    EXPECT_EQ(view.committed, 6 + i);
    EXPECT_EQ(view.reserved, 10 + i);
    EXPECT_THAT(answer.blocks, SizeIs(i == 3 ? 1 : 0));
    EXPECT_EQ(story.driver().Stats().counters.blocks_sealed, i < 2 ? 1u : 2u);
  }
}

TEST(LookAhead, S70_AcceptedDraftsEnterWithoutTruncate) {
  FacadeStory story(Pool(4, 10));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 6));
  w.Extend(kA, 10);
  EXPECT_THAT(w.Table(kA), SizeIs(3));
  w.tables().WriteDrafts(kA, {101, 102, 103, 104});
  w.Must(Batch().Advance(kA, 6, {101, 102, 103}, 4));
  const SequenceView view = w.View(kA);
  EXPECT_EQ(view.length, 9u);
  EXPECT_EQ(view.committed, 6u);
  EXPECT_EQ(view.reserved, 13u);
  EXPECT_THAT(w.Table(kA), SizeIs(4));
}

TEST(LookAhead, S71_AShortLookAheadStillLetsTheTokenEnter) {
  // Three blocks for A and one for another; with three alone the look-ahead would end at the
  // longest sequence that such a pool admits.
  FacadeStory story(Pool(4, 4));
  Worker& w = story.Attach("w");
  w.Prompt(kX, Text(2, 1));
  w.Prompt(kA, Text(1, 9));
  w.Extend(kA, 12);
  const StepResult answer = w.Do(Batch().Advance(kA, 9, {101}, 3));
  ASSERT_THAT(answer.failures, SizeIs(1));
  EXPECT_EQ(answer.failures[0].part, AdvancePart::kAhead);
  EXPECT_EQ(answer.failures[0].reserved, 12u);
  EXPECT_EQ(answer.failures[0].error.reason, Reason::kPoolExhausted);
  EXPECT_EQ(answer.failures[0].error.Detail("needed"), "1");
  const SequenceView view = w.View(kA);
  EXPECT_EQ(view.length, 10u);
  EXPECT_EQ(view.committed, 9u);
  EXPECT_EQ(view.reserved, 12u);
  w.Must(Batch().Advance(kA, 10, {102}));
  EXPECT_EQ(w.Length(kA), 11u);
}

TEST(LookAhead, S72_AForkCopiesThePartialTailOfALookAheadAtOnce) {
  FacadeStory story(Pool(4, 10));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 6));
  w.Extend(kA, 9);
  w.tables().WriteDrafts(kA, {101, 102, 103});
  const std::vector<BlockId> parent = w.Table(kA);
  const StepResult forked = w.Must(Batch().Fork(kA, 6, {kX}));
  EXPECT_THAT(forked.copies, ElementsAre(CopyOrder{0, parent[1], w.Table(kX)[1], 2}));
  EXPECT_EQ(w.Table(kA), parent);
  EXPECT_EQ(w.View(kA).reserved, 9u);
  EXPECT_EQ(story.Held(), 4u);

  const StepResult answer = w.Must(Batch().AdvanceEach({kA, kX}, {6, 6}, {101, 201}));
  EXPECT_THAT(answer.copies, SizeIs(0));
  EXPECT_THAT(answer.blocks, SizeIs(0));
  w.Must(Batch().Advance(kA, 7, {102}).Advance(kA, 8, {103}));
  // The drafts are not written again: what entered must still stand where they were written.
  EXPECT_EQ(w.tables().At(kA).tokens, Join(Text(1, 6), {101, 102, 103}));
  w.Settle();
  w.ExpectConsistent();
}

// The fork's own commit would hold the one block that it was promised: equal content that lay idle.
TEST(LookAhead, S72_AForkTakesItsBlocksBeforeItsCommitTouchesEqualContent) {
  FacadeStory story(Pool(4, 4));
  Worker& other = story.Attach("other");
  Worker& w = story.Attach("w");
  other.Prompt(kA, Text(1, 5));
  other.Finish(kA);
  EXPECT_EQ(story.Blocks().idle, 1u);
  // The first block stays held as the source of a copy when the fork commits it.
  w.Must(Batch().Begin(kA, Text(1, 2), {.skip_cache_read = true}));
  w.Must(Batch().Fork(kA, 2, {kB}));
  w.Must(Batch().Advance(kB, 2, {101}));
  const Tokens all = Text(1, 6);
  w.Must(Batch().Advance(kA, 2, Tokens(all.begin() + 2, all.end()), 1));
  const StepResult forked = w.Must(Batch().Fork(kA, 6, {kC}));
  EXPECT_THAT(forked.copies, SizeIs(1));
  w.Settle();
  EXPECT_EQ(story.Peek(Text(1, 6)), 4u);
}

TEST(LookAhead, S73_APromptEntersInChunks) {
  FacadeStory story(Pool(4, 10));
  Worker& w = story.Attach("w");
  w.Begin(kA, Text(1, 10), {.allocate_tokens = 4});
  EXPECT_EQ(w.View(kA).length, 4u);
  EXPECT_THAT(w.Table(kA), SizeIs(1));
  w.Extend(kA, 8);
  EXPECT_EQ(w.View(kA).length, 8u);
  EXPECT_THAT(w.Table(kA), SizeIs(2));
  w.Commit(kA, 4);
  const StateOf before = Snapshot(story.driver());
  EXPECT_EQ(ErrorOf(w.Do(Batch().Advance(kA, 8, {101}))).reason, Reason::kInvalidArgument);
  w.Settle();
  EXPECT_EQ(Snapshot(story.driver()), before);
  w.Extend(kA, 10);
  EXPECT_EQ(w.View(kA).length, 10u);
  EXPECT_EQ(w.View(kA).committed, 4u);
  EXPECT_THAT(w.Table(kA), SizeIs(3));
  w.Advance(kA, 101);
  EXPECT_EQ(w.View(kA).committed, 10u);
}

TEST(LookAhead, S75_AnUnsealedTailOfAnotherWorkerIsNotShared) {
  FacadeStory story(Pool(16, 10));
  Worker& prefill = story.Attach("prefill");
  Worker& decode = story.Attach("decode");
  prefill.Prompt(kA, Text(1, 40));
  const StepResult answer = decode.Must(Batch().Begin(kA, Join(Text(1, 40), {101})));
  EXPECT_EQ(answer.begins.at(0).reused_tokens, 32u);
  EXPECT_THAT(answer.copies, SizeIs(0));
  prefill.Finish(kA);
  decode.Commit(kA, 41);
  decode.ExpectConsistent();
  EXPECT_EQ(story.Blocks().referenced, 2u);
}

TEST(LookAhead, S76_AClaimLeavesCachedContentInPlace) {
  FacadeStory story(Pool(16, 16));
  Worker& one = story.Attach("one");
  Worker& two = story.Attach("two");
  one.Prompt(kA, Text(1, 160));
  one.Finish(kA);
  EXPECT_EQ(story.Blocks().idle, 10u);
  EXPECT_EQ(story.Blocks().free, 6u);

  one.Prompt(kA, Text(2, 16), {.reserve_tokens = 128});
  EXPECT_EQ(story.Peek(Text(1, 161)), 160u);
  const Error error = two.BeginError(kA, Text(3, 9 * 16));
  EXPECT_EQ(error.reason, Reason::kPoolExhausted);
  EXPECT_EQ(error.Detail("claimed_by_others"), "7");
  two.Begin(kA, Text(3, 8 * 16));
}

}  // namespace
}  // namespace quire::testing
