// Two sequences on small blocks: how logical positions map to physical blocks.
#include <algorithm>
#include <vector>

#include "gmock/gmock.h"
#include "tests/conformance/served_scenario.h"
#include "tests/support/scenario.h"

namespace quire::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsSubsetOf;
using ::testing::SizeIs;

constexpr SequenceHandle kA = 1;
constexpr SequenceHandle kB = 2;

TEST_P(LessonExample, S01_SixAndThreeTokensFillNineOfTwelveSlots) {
  Story story(Serve(Pool(4, 10)));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 6));
  w.Prompt(kB, Text(2, 3));

  EXPECT_THAT(w.Table(kA), SizeIs(2));
  EXPECT_THAT(w.Table(kB), SizeIs(1));
  const uint32_t filled = w.View(kA).length + w.View(kB).length;
  const auto slots = static_cast<uint32_t>(4 * (w.Table(kA).size() + w.Table(kB).size()));
  EXPECT_EQ(filled, 9u);
  EXPECT_EQ(slots, 12u);
  EXPECT_EQ(story.Held(), 3u);
  EXPECT_EQ(story.Blocks().free, 7u);
}

TEST_P(LessonExample, S02_OnlyTheNinthTokenNeedsABlock) {
  Story story(Serve(Pool(4, 10)));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 6));
  w.Prompt(kB, Text(2, 3));
  const std::vector<BlockId> before = w.Table(kA);

  for (const TokenId token : {1'000'006u, 1'000'007u}) {
    const StepResult answer = w.Must(Batch().Advance(kA, w.Length(kA), {token}));
    EXPECT_THAT(answer.blocks, SizeIs(0));
    EXPECT_EQ(w.Table(kA), before);
  }
  const StepResult answer = w.Must(Batch().Advance(kA, 8, {1'000'008}));
  ASSERT_THAT(answer.runs, SizeIs(1));
  EXPECT_EQ(answer.runs[0].first_index, 2u);
  EXPECT_THAT(w.Table(kA), ElementsAre(before[0], before[1], answer.blocks.at(0)));
  // Read through the table, A0..A8 stand in order whatever the ids are.
  EXPECT_EQ(w.tables().At(kA).tokens, Text(1, 9));
  w.ExpectConsistent();
}

// Leaves exactly the blocks `ids` free, handed out in their order if the free list gives back first
// what was released in the order `release`.
void LeaveFree(Worker& w, const std::vector<uint32_t>& ids, const std::vector<uint32_t>& release,
               uint32_t block_count) {
  std::vector<SequenceHandle> holder(block_count);
  for (SequenceHandle filler = 100; filler < 100 + block_count; ++filler) {
    w.Begin(filler, Text(static_cast<uint32_t>(filler), 1));
    holder.at(Index(w.Table(filler)[0])) = filler;
  }
  ASSERT_THAT(release, IsSubsetOf(ids));
  for (const uint32_t id : release) w.Finish(holder.at(id));
}

std::vector<std::vector<BlockId>> TablesOfLesson(Worker& w) {
  w.Prompt(kA, Text(1, 6));
  w.Prompt(kB, Text(2, 3));
  w.Generate(kA, {1'000'006, 1'000'007, 1'000'008});
  w.ExpectConsistent();
  return {w.Table(kA), w.Table(kB)};
}

TEST_P(LessonExample, S02_TablesFollowTheOrderInWhichBlocksAreHandedOut) {
  const std::vector<uint32_t> handed_out = {7, 2, 9, 4};
  const std::vector<uint32_t> reversed = {4, 9, 2, 7};
  const std::vector<std::vector<BlockId>> lesson = {{BlockId{7}, BlockId{2}, BlockId{4}},
                                                    {BlockId{9}}};
  // The free list may give the first or the last released block first; one of the two releases
  // hands the blocks out as the lesson does.
  std::vector<std::vector<std::vector<BlockId>>> seen;
  for (const std::vector<uint32_t>& release : {handed_out, reversed}) {
    Story story(Serve(Pool(4, 10)));
    Worker& w = story.Attach("w");
    LeaveFree(w, handed_out, release, 10);
    seen.push_back(TablesOfLesson(w));
  }
  EXPECT_THAT(seen, ::testing::Contains(lesson));
}

// The three questions: blocks held, no hole, nothing of a finished sequence left.
void ExpectThreeQuestions(Story& story, Worker& w, const std::vector<SequenceHandle>& live) {
  size_t held = 0;
  for (const SequenceHandle sequence : live) {
    const SequenceView view = w.View(sequence);
    EXPECT_EQ(view.groups.at(0).blocks.size(), (view.length + 3) / 4);
    EXPECT_EQ(std::count(view.groups[0].blocks.begin(), view.groups[0].blocks.end(), kNoBlock), 0);
    held += view.groups[0].blocks.size();
  }
  EXPECT_EQ(story.Held(), held);
  EXPECT_EQ(story.driver().ListSequences("").size(), live.size());
  w.ExpectConsistent();
}

TEST_P(LessonExample, S03_ABlockThatNeverSealedIsFreeAgain) {
  Story story(Serve(Pool(4, 10)));
  Worker& w = story.Attach("w");
  ExpectThreeQuestions(story, w, {});
  w.Prompt(kA, Text(1, 6));
  ExpectThreeQuestions(story, w, {kA});
  w.Prompt(kB, Text(2, 3));
  ExpectThreeQuestions(story, w, {kA, kB});
  w.Generate(kA, {1'000'006, 1'000'007, 1'000'008});
  ExpectThreeQuestions(story, w, {kA, kB});
  EXPECT_EQ(story.Blocks().free, 6u);

  w.Finish(kB);
  EXPECT_EQ(story.Blocks().free, 7u);
  EXPECT_EQ(story.Blocks().idle, 0u);
  ExpectThreeQuestions(story, w, {kA});
  w.Finish(kA);
  ExpectThreeQuestions(story, w, {});
  EXPECT_EQ(story.Blocks().free + story.Blocks().idle, 10u);
}

}  // namespace
}  // namespace quire::testing
