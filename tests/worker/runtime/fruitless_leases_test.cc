#include "worker/runtime/fruitless_leases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cache_service/base/error.h"
#include "worker/client/types.h"

namespace quire::runtime {
namespace {

using testing::HasSubstr;

const absl::Status& Expired() {
  static const absl::Status status = ToStatus(MakeError(Reason::kLeaseExpired, "it has ended"));
  return status;
}

// Leases that end one after another until that is final.
int CountTo(FruitlessLeases& leases) {
  for (int count = 1; count < 1000; ++count) {
    if (!leases.Ended(Expired()).ok()) return count;
  }
  return 1000;
}

TEST(FruitlessLeasesTest, EndsWithTheCauseAndNoReasonToAttachAgain) {
  FruitlessLeases leases;
  EXPECT_EQ(CountTo(leases), 10);
  const absl::Status over = leases.Ended(Expired());
  EXPECT_FALSE(client::EndsLease(over));
  EXPECT_THAT(std::string(over.message()), HasSubstr("leases in a row"));
  EXPECT_THAT(std::string(over.message()), HasSubstr("LEASE_EXPIRED: it has ended"));
}

TEST(FruitlessLeasesTest, FruitStartsTheCountAnew) {
  FruitlessLeases leases;
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 9; ++i) EXPECT_TRUE(leases.Ended(Expired()).ok());
    leases.Fruit();
    EXPECT_TRUE(leases.Ended(Expired()).ok());
    EXPECT_EQ(leases.pause(), Duration::zero());
  }
}

TEST(FruitlessLeasesTest, APauseIsTwiceTheOneBefore) {
  FruitlessLeases leases;
  Duration total{};
  for (int i = 0; i < 9; ++i) {
    EXPECT_TRUE(leases.Ended(Expired()).ok());
    EXPECT_EQ(leases.pause(), std::min<Duration>(std::chrono::milliseconds(10 << i),
                                                 std::chrono::milliseconds(500)));
    total += leases.pause();
  }
  EXPECT_LT(total, std::chrono::seconds(4));
}

TEST(FruitlessLeasesTest, AProgramThatEndsTriesLess) {
  FruitlessLeases leases;
  leases.set_ending(true);
  EXPECT_EQ(CountTo(leases), 3);
}

}  // namespace
}  // namespace quire::runtime
