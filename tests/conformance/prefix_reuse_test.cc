// What a begin reuses, and what makes content findable.
#include <vector>

#include "gmock/gmock.h"
#include "tests/support/scenario.h"

namespace quire::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr SequenceHandle kA = 1;
constexpr SequenceHandle kB = 2;
constexpr SequenceHandle kC = 3;

// 48 common tokens and `own` of the text.
Tokens Sharer(uint32_t text, uint32_t own) { return Join(Text(1, 48), Text(text, own)); }

TEST(PrefixReuse, S04_TheSecondSharerNeedsOneBlock) {
  FacadeStory story(Pool(16, 10));
  Worker& w = story.Attach("w");
  EXPECT_EQ(w.Prompt(kA, Sharer(10, 7)).reused_tokens, 0u);
  EXPECT_THAT(w.Table(kA), SizeIs(4));
  EXPECT_EQ(story.Blocks().referenced, 3u);

  const BeginResult begun = w.Prompt(kB, Sharer(11, 5));
  EXPECT_EQ(begun.reused_tokens, 48u);
  EXPECT_EQ(begun.copied_tokens, 0u);
  EXPECT_EQ(begun.length, 53u);
  EXPECT_THAT(w.Table(kB), ElementsAre(w.Table(kA)[0], w.Table(kA)[1], w.Table(kA)[2],
                                       ::testing::Ne(w.Table(kA)[3])));
  EXPECT_EQ(story.Blocks().free, 5u);
}

TEST(PrefixReuse, S05_SealedBlocksStayAsIdleContent) {
  FacadeStory story(Pool(16, 10));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Sharer(10, 7));
  w.Prompt(kB, Sharer(11, 5));
  w.Finish(kA);
  w.Finish(kB);
  EXPECT_EQ(story.Blocks().idle, 3u);
  EXPECT_EQ(story.Blocks().free, 7u);
  EXPECT_EQ(w.Prompt(kC, Sharer(12, 9)).reused_tokens, 48u);
}

TEST(PrefixReuse, S06_AnUnrelatedPromptTakesFreeBlocksThenIdleOnes) {
  FacadeStory story(Pool(16, 10));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Sharer(10, 7));
  const std::vector<BlockId> prefix(w.Table(kA).begin(), w.Table(kA).begin() + 3);
  w.Finish(kA);

  EXPECT_EQ(w.Prompt(kB, Text(20, 160)).reused_tokens, 0u);
  EXPECT_EQ(story.Blocks().free, 0u);
  EXPECT_EQ(story.Blocks().idle, 0u);
  EXPECT_EQ(story.Peek(Sharer(10, 7)), 0u);
  const std::vector<BlockId>& table = w.Table(kB);
  const std::vector<BlockId> evicted(table.begin() + 7, table.end());
  EXPECT_THAT(evicted, ::testing::UnorderedElementsAreArray(prefix));
}

TEST(PrefixReuse, S06_IdleBlocksGoDeepestFirst) {
  FacadeStory story(Pool(16, 10));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Sharer(10, 7));
  w.Finish(kA);
  w.Begin(kB, Text(20, 112));
  EXPECT_EQ(story.Peek(Sharer(10, 7)), 48u);
  for (const uint32_t left : {32u, 16u, 0u}) {
    w.Extend(kB, static_cast<uint32_t>(w.Table(kB).size()) * 16 + 16);
    EXPECT_EQ(story.Peek(Sharer(10, 7)), left);
  }
  EXPECT_EQ(story.Blocks().free, 0u);
  EXPECT_EQ(story.Blocks().idle, 0u);
}

TEST(PrefixReuse, S07_AFullyCachedPromptReusesAllButItsLastToken) {
  FacadeStory story(Pool(16, 10));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 48));
  const std::vector<BlockId> cached = w.Table(kA);
  w.Finish(kA);

  const StepResult answer = w.Must(Batch().Begin(kB, Text(1, 48)));
  ASSERT_THAT(answer.begins, SizeIs(1));
  EXPECT_EQ(answer.begins[0].reused_tokens, 47u);
  EXPECT_EQ(answer.begins[0].copied_tokens, 15u);
  const BlockId own = w.Table(kB).at(2);
  EXPECT_THAT(w.Table(kB), ElementsAre(cached[0], cached[1], ::testing::Ne(cached[2])));
  EXPECT_THAT(answer.copies, ElementsAre(CopyOrder{0, cached[2], own, 15}));

  w.Must(Batch().Commit(kB, 48, 48));
  EXPECT_EQ(w.Table(kB), cached);
  EXPECT_EQ(story.Blocks().free, 6u) << "the private copy is held until the step is complete";
  w.Settle();
  EXPECT_EQ(story.Blocks().free, 7u);
  EXPECT_EQ(story.Blocks().referenced, 3u);
}

TEST(PrefixReuse, S07_SeveralGroupsGetOneCopyOrderEach) {
  FacadeStory story(PoolOfWindows(16, 20, {0, 0}, 160));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 48));
  w.Finish(kA);
  const StepResult answer = w.Must(Batch().Begin(kB, Text(1, 48)));
  ASSERT_THAT(answer.copies, SizeIs(2));
  EXPECT_EQ(answer.copies[0].group + answer.copies[1].group, 1u);
  EXPECT_EQ(answer.copies[0].tokens, 15u);
  EXPECT_EQ(answer.copies[1].tokens, 15u);
  w.Must(Batch().Commit(kB, 48, 48));
  w.Settle();
  EXPECT_EQ(story.Blocks().free, 14u);
}

TEST(PrefixReuse, S08_APartlyEqualBlockIsReusedByCopyIfItSealed) {
  for (const uint32_t cached : {48u, 47u}) {
    FacadeStory story(Pool(16, 10));
    Worker& w = story.Attach("w");
    w.Prompt(kA, Text(1, cached));
    w.Finish(kA);
    const BeginResult begun = w.Prompt(kB, Join(Text(1, 40), Text(2, 20)));
    EXPECT_EQ(begun.reused_tokens, cached == 48 ? 40u : 32u);
    EXPECT_EQ(begun.copied_tokens, cached == 48 ? 8u : 0u);
  }
}

TEST(PrefixReuse, S09_TwentyEqualPromptsEndOnTenBlocks) {
  FacadeStory story(Pool(16, 200));
  Worker& w = story.Attach("w");
  Batch begins;
  for (SequenceHandle s = 1; s <= 20; ++s) begins.Begin(s, Text(1, 160));
  for (const BeginResult& begun : w.Must(begins).begins) EXPECT_EQ(begun.reused_tokens, 0u);
  EXPECT_EQ(story.Blocks().free, 0u);
  EXPECT_EQ(story.Blocks().filling, 200u);

  Batch commits;
  for (SequenceHandle s = 1; s <= 20; ++s) commits.Commit(s, 160, 160);
  w.Must(commits);
  w.Settle();
  for (SequenceHandle s = 2; s <= 20; ++s) EXPECT_EQ(w.Table(s), w.Table(1));
  EXPECT_EQ(story.Blocks().referenced, 10u);
  EXPECT_EQ(story.Blocks().free, 190u);
  EXPECT_EQ(story.driver().Stats().counters.blocks_deduplicated, 190u);
}

TEST(PrefixReuse, S10_GeneratedTokensAreReusedByTheNextTurn) {
  for (const uint32_t committed : {64u, 63u}) {
    FacadeStory story(Pool(16, 20));
    Worker& w = story.Attach("w");
    const Tokens generated = Text(2, 32);
    w.Prompt(kA, Text(1, 32));
    w.Generate(kA, generated);
    EXPECT_EQ(w.View(kA).committed, 63u) << "the last sampled token was not computed";
    w.Commit(kA, committed);
    w.Finish(kA);
    const Tokens next_turn = Join(Join(Text(1, 32), generated), Text(3, 20));
    EXPECT_EQ(w.Prompt(kB, next_turn).reused_tokens, committed == 64 ? 64u : 48u);
  }
}

TEST(PrefixReuse, S11_OneTokenReusesNothing) {
  FacadeStory story(Pool(16, 10));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 48));
  EXPECT_EQ(w.Prompt(kB, Text(1, 1)).reused_tokens, 0u);
  EXPECT_EQ(story.Peek(Text(1, 1)), 0u);
}

TEST(PrefixReuse, S11_AnEmptyPromptIsInvalid) {
  FacadeStory story(Pool(16, 10));
  Worker& w = story.Attach("w");
  const Error error = w.BeginError(kA, {});
  EXPECT_EQ(error.reason, Reason::kInvalidArgument);
  EXPECT_THAT(std::string(error.Detail("field")), HasSubstr("tokens"));
}

TEST(PrefixReuse, S12_NotReadingTheCacheStillFillsIt) {
  FacadeStory story(Pool(16, 20));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 55));
  EXPECT_EQ(w.Prompt(kB, Text(1, 55), {.skip_cache_read = true}).reused_tokens, 0u);
  EXPECT_EQ(w.Prompt(kC, Text(2, 55), {.skip_cache_read = true}).reused_tokens, 0u);
  EXPECT_EQ(w.Prompt(4, Text(2, 55)).reused_tokens, 48u);
}

TEST(PrefixReuse, S13_WhatWasNeverCommittedIsNotFound) {
  FacadeStory story(Pool(16, 10));
  Worker& w = story.Attach("w");
  w.Begin(kA, Text(1, 55));
  w.Finish(kA);
  EXPECT_EQ(story.Blocks().free, 10u);
  EXPECT_EQ(w.Begin(kB, Text(1, 55)).reused_tokens, 0u);
}

TEST(PrefixReuse, S14_OnlyFullCommittedBlocksAreFound) {
  FacadeStory story(Pool(16, 10));
  Worker& w = story.Attach("w");
  w.Begin(kA, Text(1, 55));
  w.Commit(kA, 20);
  w.Finish(kA);
  EXPECT_EQ(story.Blocks().idle, 1u);
  EXPECT_EQ(w.Begin(kB, Text(1, 55)).reused_tokens, 16u);
}

TEST(PrefixReuse, S15_DropTakesOutWhatNobodyElseHolds) {
  FacadeStory story(Pool(16, 20));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 64));
  w.Prompt(kB, Join(Text(1, 32), Text(2, 5)));
  w.Finish(kA, /*drop=*/true);
  EXPECT_EQ(story.Peek(Text(1, 65)), 32u) << "the two blocks that B holds stay";
  EXPECT_EQ(story.Blocks().idle, 0u);
  w.Finish(kB);
  EXPECT_EQ(story.Peek(Text(1, 65)), 32u);
}

TEST(PrefixReuse, S15_DropStopsBelowAResidentChild) {
  FacadeStory story(Pool(16, 20));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 48));
  w.Prompt(kB, Join(Text(1, 32), Text(2, 32)));
  w.Finish(kB);
  w.Finish(kA, /*drop=*/true);
  EXPECT_EQ(story.Peek(Text(1, 49)), 32u) << "the third block has no child, the second has";
  EXPECT_EQ(story.Peek(Join(Text(1, 32), Text(2, 33))), 64u);
}

TEST(PrefixReuse, S15_DropLeavesWhatAnotherSequenceSealedFirst) {
  FacadeStory story(Pool(16, 20));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 48));
  w.Finish(kA);
  w.Prompt(kB, Join(Text(1, 48), Text(2, 16)));
  w.Finish(kB, /*drop=*/true);
  EXPECT_EQ(story.Peek(Join(Text(1, 48), Text(2, 17))), 48u);
}

TEST(PrefixReuse, S15_DropTakesOutWhatStandsBeforeRemovedContent) {
  FacadeStory story(Pool(16, 20));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 64));
  const Tokens start = Text(1, 48);
  PrefixSelector third;
  third.model_fingerprint = "model";
  third.tokens = start;
  EXPECT_EQ(story.driver().EvictPrefix(third).value_or(0), 2u);
  EXPECT_EQ(story.Peek(Text(1, 65)), 32u);
  w.Finish(kA, /*drop=*/true);
  EXPECT_EQ(story.Peek(Text(1, 65)), 0u);
}

TEST(PrefixReuse, APartOfABlockIsFoundBehindAThousandThatOthersHaveNotCompleted) {
  FacadeStory story(Pool(16, 1100));
  Worker& a = story.Attach("a");
  Worker& b = story.Attach("b");
  const auto content = [](uint32_t text) { return Join(Text(1, 4), Text(text, 12)); };
  Batch begins;
  Batch commits;
  for (SequenceHandle sequence = 100; sequence < 1100; ++sequence) {
    begins.Begin(sequence, content(static_cast<uint32_t>(sequence)));
    commits.Commit(sequence, 16, 16);
  }
  a.Must(begins);
  a.Must(commits);
  ASSERT_EQ(story.Blocks().pending, 1000u);
  EXPECT_EQ(b.Prompt(kA, content(10)).reused_tokens, 0u);
  EXPECT_EQ(b.Begin(kB, content(11)).reused_tokens, 4u);
  a.Settle();
}

TEST(PrefixReuse, EverySequenceBelowARemovedPartPublishesNothingMore) {
  FacadeStory story(Pool(16, 20));
  Worker& w = story.Attach("w");
  const Tokens start = Text(1, 8);
  for (const SequenceHandle sequence : {kA, kB, kC}) {
    w.Prompt(sequence, Join(start, Text(static_cast<uint32_t>(sequence) + 10, 24)));
  }
  PrefixSelector part;
  part.model_fingerprint = "model";
  part.tokens = start;
  EXPECT_EQ(story.driver().EvictPrefix(part).value_or(0), 6u);
  for (const SequenceHandle sequence : {kA, kB, kC}) {
    w.Generate(sequence, Text(20, 16));
    w.Finish(sequence);
  }
  w.Settle();
  EXPECT_EQ(story.Peek(Join(start, Text(12, 24))), 0u);
  EXPECT_EQ(story.Blocks().free, 20u);
}

}  // namespace
}  // namespace quire::testing
