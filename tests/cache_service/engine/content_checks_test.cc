#include "cache_service/engine/content_checks.h"

#include "gtest/gtest.h"

namespace quire {
namespace {

constexpr size_t kBlocks = 16;

TEST(ContentChecksTest, QueueStaysBoundedWhenNobodyComputes) {
  ContentChecks checks(kBlocks);
  for (uint32_t i = 0; i < 100'000; ++i) {
    checks.Forget(BlockId(i % kBlocks));
    checks.Add(BlockId(i % kBlocks));
  }
  EXPECT_LE(checks.queued(), kBlocks);
}

TEST(ContentChecksTest, CurrentWorkSurvivesEarlierLives) {
  ContentChecks checks(kBlocks);
  for (uint32_t i = 0; i < 5'000; ++i) checks.Add(BlockId(i % kBlocks));
  const std::vector<ContentCheck> batch = checks.Take(5'000);
  ASSERT_EQ(batch.size(), kBlocks);
  for (const ContentCheck& check : batch) {
    EXPECT_EQ(checks.Finish(check), ContentChecks::Outcome::kStored);
  }
  EXPECT_TRUE(checks.idle());
}

TEST(ContentChecksTest, ContentThatChangesWhileItIsReadIsReadAgain) {
  ContentChecks checks(kBlocks);
  checks.Add(BlockId(5));
  const ContentCheck before = checks.Take(1).at(0);
  checks.Forget(BlockId(5));
  EXPECT_EQ(checks.Finish(before), ContentChecks::Outcome::kGone);
  checks.Add(BlockId(5));
  EXPECT_EQ(checks.Finish(before), ContentChecks::Outcome::kGone);
  EXPECT_EQ(checks.Finish(checks.Take(1).at(0)), ContentChecks::Outcome::kStored);
}

TEST(ContentChecksTest, ForgottenWorkIsNotHandedOut) {
  ContentChecks checks(kBlocks);
  for (uint32_t i = 0; i < 4; ++i) checks.Add(BlockId(i));
  checks.Forget(BlockId(0));
  checks.Forget(BlockId(2));
  const std::vector<ContentCheck> batch = checks.Take(2);
  ASSERT_EQ(batch.size(), 2u);
  EXPECT_EQ(batch[0].block, BlockId(1));
  EXPECT_EQ(batch[1].block, BlockId(3));
  EXPECT_TRUE(checks.idle());
}

TEST(ContentChecksTest, AllNamesWhatHasAChecksum) {
  ContentChecks checks(kBlocks);
  for (const uint32_t block : {2u, 7u, 9u}) checks.Add(BlockId(block));
  for (const ContentCheck& check : checks.Take(2)) checks.Finish(check);
  checks.Forget(BlockId(2));
  ASSERT_EQ(checks.All().size(), 1u);
  EXPECT_EQ(checks.All()[0].block, BlockId(7));
}

TEST(ContentChecksTest, SamplesAreComparedWithTheFirstChecksum) {
  ContentChecks checks(kBlocks);
  checks.Add(BlockId(3));
  checks.Finish(checks.Take(1).at(0));
  checks.Sample(BlockId(3));
  ContentCheck again = checks.Take(1).at(0);
  EXPECT_EQ(checks.Finish(again), ContentChecks::Outcome::kEqual);
  again.computed.low += 1;
  EXPECT_EQ(checks.Finish(again), ContentChecks::Outcome::kDifferent);
}

}  // namespace
}  // namespace quire
