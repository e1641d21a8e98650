// The structure audit cannot see wrong bytes; the content audit does.
#include <cstdint>
#include <optional>
#include <vector>

#include "gmock/gmock.h"
#include "tests/support/scenario.h"

namespace quire::testing {
namespace {

using ::testing::SizeIs;

constexpr SequenceHandle kA = 1;
constexpr SequenceHandle kB = 2;

// Checksums of the tags in a story's memory.
class TaggedContents final : public BlockContents {
 public:
  void SetMemory(const TaggedMemory& memory) { memory_ = &memory; }

  Checksum ChecksumOf(BlockId block, uint32_t group) override {
    Checksum sum{0xcbf29ce484222325, group};
    for (uint32_t slot = 0; slot < memory_->block_tokens(); ++slot) {
      sum.low = (sum.low ^ memory_->At(block, slot).content) * 0x100000001b3;
      sum.high += memory_->At(block, slot).content * (slot + 1);
    }
    return sum;
  }

 private:
  const TaggedMemory* memory_ = nullptr;
};

struct ContentStory {
  TaggedContents contents;
  FacadeStory story;
  Worker* worker = nullptr;

  ContentStory() : story(Pool(16, 20), {.contents = &contents}) {
    contents.SetMemory(story.memory());
    worker = &story.Attach("w");
  }

  // Checksums are computed off the hot path.
  void LetChecksumsSettle() {
    for (int i = 0; i < 20; ++i) story.Pass(std::chrono::milliseconds(100));
  }

  // Flips a byte; returns what to write to mend it.
  SlotTag Flip(BlockId block) {
    const SlotTag whole = story.memory().At(block, 3);
    story.memory().Write(block, 3, {whole.content ^ 0xFF00, whole.group});
    return whole;
  }
};

TEST(Content, S59_AHealthyPoolHasNoFindings) {
  ContentStory content;
  Worker& w = *content.worker;
  for (uint32_t i = 0; i < 40; ++i) {
    w.Prompt(i, Join(Text(1, 32), Text(i + 2, 20)));
    w.Fork(i, {1000});
    w.Advance(i, 101);
    w.Finish(i);
    w.Finish(1000);
    EXPECT_THAT(content.story.driver().Audit(false).findings, SizeIs(0));
    EXPECT_THAT(content.story.driver().Audit(true).findings, SizeIs(0));
  }
  content.LetChecksumsSettle();
  const AuditReport report = content.story.driver().Audit(true);
  EXPECT_THAT(report.findings, SizeIs(0));
  EXPECT_EQ(report.blocks_checked, 20u);
  EXPECT_GT(report.content_checked, 0u);
}

TEST(Content, S59_ABadIdleBlockLeavesWithItsSubtree) {
  ContentStory content;
  FacadeStory& story = content.story;
  Worker& w = *content.worker;
  w.Prompt(kA, Text(1, 64));
  const std::vector<BlockId> table = w.Table(kA);
  w.Finish(kA);
  content.LetChecksumsSettle();
  content.Flip(table[1]);
  EXPECT_THAT(story.driver().Audit(false).findings, SizeIs(0)) << "the structure is sound";

  const AuditReport report = story.driver().Audit(true);
  ASSERT_THAT(report.findings, SizeIs(1));
  EXPECT_EQ(report.findings[0].rule, 0u);
  EXPECT_EQ(report.findings[0].block, std::optional<BlockId>(table[1]));
  EXPECT_EQ(story.Peek(Text(1, 65)), 16u);
  EXPECT_EQ(story.Blocks().idle, 1u);
  EXPECT_EQ(story.Blocks().free, 19u);
  EXPECT_EQ(story.driver().Stats().counters.content_mismatches, 1u);
  EXPECT_THAT(story.driver().Audit(true).findings, SizeIs(0)) << "it was taken out";
}

TEST(Content, S59_EverySequenceThatHoldsABadBlockIsTold) {
  ContentStory content;
  FacadeStory& story = content.story;
  Worker& w = *content.worker;
  w.Prompt(kA, Text(1, 64));
  w.Prompt(kB, Join(Text(1, 16), Text(2, 20)));
  content.LetChecksumsSettle();
  const BlockId bad = w.Table(kA)[1];
  const SlotTag whole = content.Flip(bad);
  EXPECT_THAT(story.driver().Audit(true).findings, SizeIs(1));
  EXPECT_EQ(story.Blocks().bad, 1u) << "held and not reused";
  story.memory().Write(bad, 3, whole);

  const StepResult answer = w.Must(Batch());
  ASSERT_THAT(answer.notices, SizeIs(1));
  EXPECT_EQ(answer.notices[0].sequence, kA);
  EXPECT_EQ(answer.notices[0].error.reason, Reason::kContentMismatch);
  EXPECT_THAT(w.Must(Batch()).notices, SizeIs(0)) << "told once";
  EXPECT_EQ(story.Peek(Text(1, 65)), 16u);
  w.Finish(kA);
  EXPECT_EQ(story.Blocks().bad, 0u);
  EXPECT_EQ(story.Peek(Text(1, 65)), 16u);
}

}  // namespace
}  // namespace quire::testing
