#include "cache_service/engine/content_checks.h"

#include "gtest/gtest.h"

namespace quire {
namespace {

constexpr size_t kBlocks = 16;

TEST(ContentChecksTest, QueueStaysBoundedWhenNobodyComputes) {
  ContentChecks checks;
  for (uint32_t i = 0; i < 100'000; ++i) {
    checks.Forget(BlockId(i % kBlocks));
    checks.Add(BlockId(i % kBlocks), 0);
  }
  EXPECT_LE(checks.queued(), 2 * kBlocks + 1024);
}

TEST(ContentChecksTest, CurrentWorkSurvivesWhatIsDropped) {
  ContentChecks checks;
  for (uint32_t i = 0; i < 5'000; ++i) checks.Add(BlockId(i % kBlocks), i);
  const std::vector<ContentCheck> batch = checks.Take(5'000);
  ASSERT_EQ(batch.size(), kBlocks);
  for (const ContentCheck& check : batch) {
    EXPECT_GE(check.group, 5'000 - kBlocks);
    EXPECT_EQ(checks.Finish(check), ContentChecks::Outcome::kStored);
  }
  EXPECT_TRUE(checks.idle());
}

TEST(ContentChecksTest, SamplesAreComparedWithTheFirstChecksum) {
  ContentChecks checks;
  checks.Add(BlockId(3), 0);
  checks.Finish(checks.Take(1).at(0));
  checks.Sample(BlockId(3));
  ContentCheck again = checks.Take(1).at(0);
  EXPECT_EQ(checks.Finish(again), ContentChecks::Outcome::kEqual);
  again.computed.low += 1;
  EXPECT_EQ(checks.Finish(again), ContentChecks::Outcome::kDifferent);
}

}  // namespace
}  // namespace quire
