#include "cache_service/memory/lease_slots.h"

#include <set>

#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace quire {
namespace {

using testing::HasReason;
using testing::IsOk;

TEST(LeaseSlotsTest, GivesEachLeaseItsOwnSlot) {
  LeaseSlots slots(3);
  std::set<uint64_t> taken;
  for (uint64_t lease = 1; lease <= 3; ++lease) {
    const auto grant = slots.Take(lease);
    ASSERT_THAT(grant, IsOk());
    EXPECT_LT(grant->slot, 3u);
    taken.insert(grant->slot);
  }
  EXPECT_EQ(taken.size(), 3u);
}

TEST(LeaseSlotsTest, GivesTheSameSlotAgain) {
  LeaseSlots slots(2);
  const uint64_t first = slots.Take(7)->slot;
  EXPECT_EQ(slots.Take(7)->slot, first);
  EXPECT_THAT(slots.Take(8), IsOk());
}

TEST(LeaseSlotsTest, RefusesWhenAllAreInUseAndReusesReleasedOnes) {
  LeaseSlots slots(1);
  ASSERT_THAT(slots.Take(1), IsOk());
  EXPECT_THAT(slots.Take(2), HasReason(Reason::kLimitExceeded));
  EXPECT_EQ(slots.Release(1), 0u);
  const auto grant = slots.Take(2);
  ASSERT_THAT(grant, IsOk());
  EXPECT_FALSE(grant->revoked);
}

TEST(LeaseSlotsTest, LeaseThatEndedBeforeItsGrantIsRevokedAndKeepsNoSlot) {
  LeaseSlots slots(1);
  EXPECT_EQ(slots.Release(5), std::nullopt);
  const auto late = slots.Take(5);
  ASSERT_THAT(late, IsOk());
  EXPECT_TRUE(late->revoked);
  EXPECT_THAT(slots.Take(6), IsOk());
}

}  // namespace
}  // namespace quire
