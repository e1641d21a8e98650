// Numbers by tenant and by layer group: what happened, bounded, and nothing of what was undone.
#include <string>
#include <vector>

#include "cache_service/engine/cache_engine.h"
#include "gtest/gtest.h"
#include "tests/support/fake_clock.h"

namespace quire {
namespace {

class TenantStatsTest : public ::testing::Test {
 protected:
  explicit TenantStatsTest(std::vector<GroupSpec> groups = {GroupSpec{}}) {
    EngineOptions options;
    options.block_count = 200;
    options.max_sequence_tokens = 64;
    options.groups = std::move(groups);
    engine_ = *CacheEngine::Create(options, clock_);
    lease_ =
        engine_
            ->Attach({.worker = "w", .incarnation = 1, .model_fingerprint = "m", .lock_step = true})
            ->lease;
  }

  void Step(const std::vector<Operation>& operations, bool all_or_nothing = false) {
    ASSERT_TRUE(engine_
                    ->Step({.lease = lease_,
                            .epoch = 1,
                            .step = ++step_,
                            .all_or_nothing = all_or_nothing,
                            .operations = operations})
                    .ok());
  }

  BeginOp Prompt(SequenceHandle sequence, const std::string& tenant) {
    BeginOp op;
    op.sequence = sequence;
    op.tokens = tokens_;
    op.namespace_parts.tenant = tenant;
    return op;
  }

  TenantStats Of(const std::string& tenant) { return engine_->Stats().tenants[tenant]; }

  const std::vector<TokenId> tokens_ = std::vector<TokenId>(33, 7);
  FakeClock clock_;
  std::unique_ptr<CacheEngine> engine_;
  LeaseId lease_;
  StepNumber step_ = 0;
};

TEST_F(TenantStatsTest, EachTenantHasItsOwn) {
  Step({Prompt(1, "a"), Prompt(2, "b")});
  Step({CommitOp{1, 33, 33}});
  Step({Prompt(3, "a")});
  EXPECT_EQ(Of("a").begins, 2u);
  EXPECT_EQ(Of("a").sequences, 2u);
  EXPECT_EQ(Of("a").prefix_tokens_queried, 66u);
  EXPECT_EQ(Of("a").prefix_tokens_hit_whole, 32u);
  EXPECT_EQ(Of("b").begins, 1u);
  EXPECT_EQ(Of("b").prefix_tokens_hit_whole, 0u);
  Step({FinishOp{1, false, {}}});
  EXPECT_EQ(Of("a").sequences, 1u);
  EXPECT_EQ(Of("a").begins, 2u);
  EXPECT_EQ(Of(""), TenantStats{});
}

TEST_F(TenantStatsTest, AStepThatIsUndoneCountsNothing) {
  Step({Prompt(1, "a")});
  const TenantStats before = Of("a");
  Step({Prompt(2, "a"), Prompt(3, "new"), FinishOp{99, false, {}}}, true);
  EXPECT_EQ(Of("a"), before);
  EXPECT_EQ(Of("new"), TenantStats{});
}

TEST_F(TenantStatsTest, ManyOrLongNamesShareOne) {
  constexpr size_t kMore = 10;
  for (size_t i = 0; i < kMostTenants + kMore; ++i) {
    Step({Prompt(1, "t" + std::to_string(i)), FinishOp{1, false, {}}});
  }
  EXPECT_LE(engine_->Stats().tenants.size(), kMostTenants + 2);
  EXPECT_EQ(Of("t0").begins, 1u);
  const uint64_t late = Of(kOtherTenants).begins;
  EXPECT_GE(late, kMore);
  Step({Prompt(1, std::string(kMostTenantBytes + 1, 'x'))});
  EXPECT_EQ(Of(kOtherTenants).begins, late + 1);
  EXPECT_EQ(Of(kOtherTenants).sequences, 1u);
}

class GroupStatsTest : public TenantStatsTest {
 protected:
  GroupStatsTest() : TenantStatsTest({GroupSpec{}, GroupSpec{.window_tokens = 16, .layers = {}}}) {}
};

TEST_F(GroupStatsTest, BlocksAreCountedInTheirGroup) {
  Step({Prompt(1, "")});
  Step({CommitOp{1, 33, 33}});
  Step({});
  const EngineStats stats = engine_->Stats();
  ASSERT_EQ(stats.groups.size(), 2u);
  EXPECT_EQ(stats.groups[0].referenced, 2u);
  EXPECT_EQ(stats.groups[0].filling, 1u);
  // Its first block has left the window.
  EXPECT_EQ(stats.groups[1].referenced, 1u);
  EXPECT_EQ(stats.groups[1].idle, 1u);
  EXPECT_EQ(stats.groups[1].filling, 1u);
  BlockStateCounts sum = stats.groups[0];
  sum.referenced += stats.groups[1].referenced;
  sum.idle += stats.groups[1].idle;
  sum.filling += stats.groups[1].filling;
  sum.free = stats.blocks.free;
  EXPECT_EQ(sum, stats.blocks);
  EXPECT_TRUE(engine_->Audit(false).findings.empty());
}

}  // namespace
}  // namespace quire
