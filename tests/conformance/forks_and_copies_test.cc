// Forks share blocks; the first write into a shared block makes a private copy.
#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "tests/conformance/served_scenario.h"
#include "tests/support/scenario.h"

namespace quire::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr SequenceHandle kA = 1;
constexpr SequenceHandle kB = 2;
constexpr SequenceHandle kC = 3;
constexpr SequenceHandle kD = 4;

std::set<BlockId> DistinctBlocks(const Worker& w, const std::vector<SequenceHandle>& sequences) {
  std::set<BlockId> blocks;
  for (const SequenceHandle s : sequences) blocks.insert(w.Table(s).begin(), w.Table(s).end());
  return blocks;
}

TEST_P(ForksAndCopies, S20_TheLastHolderWritesInPlace) {
  Story story(Serve(Pool(4, 10)));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 6));
  const BlockId shared = w.Table(kA)[1];
  const StepResult forked = w.Must(Batch().Fork(kA, 6, {kB, kC, kD}));
  EXPECT_THAT(forked.copies, SizeIs(0));
  w.Settle();
  EXPECT_EQ(story.Blocks().free, 8u) << "a fork allocates nothing";
  for (const SequenceHandle child : {kB, kC, kD}) EXPECT_EQ(w.Table(child), w.Table(kA));

  const StepResult answer =
      w.Must(Batch().AdvanceEach({kA, kB, kC, kD}, {6, 6, 6, 6}, {101, 102, 103, 104}));
  ASSERT_THAT(answer.copies, SizeIs(3));
  for (const CopyOrder& copy : answer.copies) {
    EXPECT_EQ(copy.source, shared);
    EXPECT_EQ(copy.tokens, 2u);
  }
  EXPECT_EQ(w.Table(kD)[1], shared);
  w.Settle();
  EXPECT_THAT(DistinctBlocks(w, {kA, kB, kC, kD}), SizeIs(5));
  EXPECT_EQ(story.Blocks().free, 5u);
}

TEST_P(ForksAndCopies, S21_FourSamplesTakeFourteenBlocks) {
  Story story(Serve(Pool(16, 40)));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 100));
  w.Fork(kA, {kB, kC, kD});
  for (uint32_t i = 0; i < 28; ++i) {
    w.Must(Batch().AdvanceEach({kA, kB, kC, kD}, std::vector<uint32_t>(4, 100 + i),
                               {5000 + i, 6000 + i, 7000 + i, 8000 + i}));
  }
  w.Settle();
  EXPECT_THAT(DistinctBlocks(w, {kA, kB, kC, kD}), SizeIs(14));
  EXPECT_EQ(story.Blocks().free, 26u);
  size_t without_sharing = 0;
  for (const SequenceHandle s : {kA, kB, kC, kD}) without_sharing += w.Table(s).size();
  EXPECT_EQ(without_sharing, 32u);
}

// Beams of a search: every step some are dropped and replaced by forks of others.
class BeamSearch {
 public:
  BeamSearch(Worker& worker, const Tokens& prompt, size_t width) : worker_(worker) {
    worker_.Prompt(next_, prompt);
    beams_ = {next_++};
    while (beams_.size() < width) beams_.push_back(next_++);
    worker_.Fork(beams_[0], {beams_.begin() + 1, beams_.end()});
  }

  const std::vector<SequenceHandle>& beams() const { return beams_; }

  // Each beam advances by one token.
  void Advance() {
    std::shuffle(beams_.begin(), beams_.end(), random_);
    std::vector<uint32_t> lengths;
    Tokens tokens;
    for (const SequenceHandle beam : beams_) {
      lengths.push_back(worker_.Length(beam));
      tokens.push_back(next_token_++);
    }
    worker_.Must(Batch().AdvanceEach(beams_, lengths, tokens));
  }

  // The `dropped` last beams are replaced by forks of the first.
  void Replace(size_t dropped) {
    if (dropped == 0) return;
    Batch replace;
    for (size_t i = beams_.size() - dropped; i < beams_.size(); ++i) {
      replace.Finish(beams_[i]);
      beams_[i] = next_++;
    }
    replace.Fork(beams_[0], worker_.Length(beams_[0]),
                 {beams_.end() - static_cast<std::ptrdiff_t>(dropped), beams_.end()});
    worker_.Must(replace);
  }

 private:
  Worker& worker_;
  std::mt19937 random_{7};
  std::vector<SequenceHandle> beams_;
  SequenceHandle next_ = 1;
  TokenId next_token_ = 1;
};

std::set<BlockId> SealedBlocks(const Worker& w, const std::vector<SequenceHandle>& sequences) {
  std::set<BlockId> blocks;
  for (const SequenceHandle s : sequences) {
    const uint32_t sealed = w.View(s).committed / 4;
    blocks.insert(w.Table(s).begin(), w.Table(s).begin() + sealed);
  }
  return blocks;
}

TEST_P(ForksAndCopies, S22_BeamSearchLeaksNothing) {
  Story story(Serve(Pool(4, 400)));
  Worker& w = story.Attach("w");
  BeamSearch search(w, Text(1, 10), 4);
  std::set<BlockId> sealed_ever;
  for (size_t step = 0; step < 50; ++step) {
    search.Advance();
    sealed_ever.merge(SealedBlocks(w, search.beams()));
    search.Replace(step % 4);
    w.Settle();
    const std::set<BlockId> held = DistinctBlocks(w, search.beams());
    EXPECT_EQ(story.Held(), held.size()) << "step " << step;
    const std::set<BlockId> sealed_now = SealedBlocks(w, search.beams());
    sealed_ever.insert(sealed_now.begin(), sealed_now.end());
    EXPECT_EQ(story.Blocks().referenced, sealed_now.size()) << "step " << step;
    EXPECT_EQ(story.Blocks().idle, sealed_ever.size() - sealed_now.size()) << "step " << step;
    EXPECT_EQ(story.Blocks().free, 400 - held.size() - story.Blocks().idle) << "step " << step;
    w.ExpectConsistent();
  }
  for (const SequenceHandle beam : search.beams()) w.Finish(beam);
  EXPECT_EQ(story.Held(), 0u);
  EXPECT_EQ(story.Blocks().free + story.Blocks().idle, 400u);
}

TEST_P(ForksAndCopies, S23_FamiliesEndInAnyOrder) {
  Story story(Serve(Pool(4, 20)));
  Worker& w = story.Attach("w");
  std::vector<SequenceHandle> order = {kA, kB, kC, kD};
  do {
    w.Prompt(kA, Text(1, 6), {.skip_cache_read = true});
    w.Fork(kA, {kB, kC, kD});
    w.Must(Batch().AdvanceEach({kA, kB, kC, kD}, {6, 6, 6, 6}, {101, 102, 103, 104}));
    for (const SequenceHandle s : order) w.Finish(s);
    const BlockStateCounts blocks = story.Blocks();
    EXPECT_EQ(blocks.free, 19u);
    EXPECT_EQ(blocks.idle, 1u);
    EXPECT_EQ(story.Held() + blocks.fenced, 0u);
    story.ExpectSound();
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_P(ForksAndCopies, S24_CopiesOfOneStepFollowTheirOrder) {
  Story story(Serve(Pool(4, 10)));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 6));
  w.Fork(kA, {kB});
  const BlockId a = w.Table(kA)[1];
  const StepResult answer = w.Must(
      Batch().Advance(kB, 6, {101}).Truncate(kB, 7, 6).Fork(kB, 6, {kC}).Advance(kC, 6, {102}));
  ASSERT_THAT(answer.copies, SizeIs(2));
  const BlockId b = answer.copies[0].destination;
  const BlockId c = answer.copies[1].destination;
  EXPECT_THAT(answer.copies, ElementsAre(CopyOrder{0, a, b, 2}, CopyOrder{0, b, c, 2}));
  EXPECT_EQ(w.Table(kB)[1], b);
  EXPECT_EQ(w.Table(kC)[1], c);
  w.Settle();
  w.ExpectConsistent();
}

TEST_P(ForksAndCopies, S24_AForkSharesNoTokenOfItsOwnStep) {
  Story story(Serve(Pool(4, 10)));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 6));
  w.Fork(kA, {kB});
  const StepResult answer = w.Must(Batch().Advance(kB, 6, {101}).Fork(kB, 7, {kC}));
  EXPECT_THAT(answer.forks, ElementsAre(ForkResult{1, 6}));
  EXPECT_EQ(w.Length(kC), 6u);
  w.Must(Batch().Advance(kC, 6, {102}));
  w.Settle();
  EXPECT_EQ(w.tables().At(kC).tokens, Join(Text(1, 6), {102}));
  w.ExpectConsistent();
}

TEST_P(ForksAndCopies, S24_AParentThatWritesInTheStepOfItsForkLeavesTheChildItsBlock) {
  Story story(Serve(Pool(4, 10)));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 6));
  const BlockId shared = w.Table(kA)[1];
  const StepResult answer = w.Must(Batch().Fork(kA, 6, {kB}).Advance(kA, 6, {101}));
  EXPECT_THAT(answer.copies, SizeIs(1));
  EXPECT_EQ(w.Table(kB)[1], shared);
  EXPECT_NE(w.Table(kA)[1], shared);
  w.Settle();
  w.ExpectConsistent();
}

TEST_P(ForksAndCopies, S24_AChildOutlivesAParentThatEndsInTheStepOfItsFork) {
  Story story(Serve(Pool(4, 10)));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 6));
  w.Must(Batch().Begin(kC, Text(1, 8), {.skip_cache_read = true}));
  // The fork seals what C computed again; the child starts on the blocks that stay.
  w.Must(Batch().Fork(kC, 8, {kB}).Finish(kC));
  w.Settle();
  EXPECT_EQ(w.Table(kB)[0], w.Table(kA)[0]);
  w.Advance(kB, 101);
  w.ExpectConsistent();
}

TEST_P(ForksAndCopies, S25_TruncatingIntoASharedBlockCopiesOnTheNextWrite) {
  Story story(Serve(Pool(4, 10)));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 8));
  w.Fork(kA, {kB});
  w.Truncate(kB, 6);
  EXPECT_EQ(w.Table(kB), w.Table(kA));
  EXPECT_EQ(story.Blocks().free, 8u);
  const StepResult answer = w.Must(Batch().Advance(kB, 6, {101}));
  EXPECT_THAT(answer.copies, ElementsAre(CopyOrder{0, w.Table(kA)[1], w.Table(kB)[1], 2}));
  w.Settle();
  EXPECT_EQ(w.tables().At(kA).tokens, Text(1, 8));
  w.ExpectConsistent();
}

}  // namespace
}  // namespace quire::testing
