#include "worker/client/lease_keeper.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "cache_service/base/error.h"

namespace quire::client {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

class ManualClock final : public Clock {
 public:
  TimePoint Now() const override { return TimePoint(Duration(now_.load())); }

  void Advance(Duration by) { now_ += by.count(); }

 private:
  std::atomic<int64_t> now_{1};
};

// Waits in real time for what the keeper's thread does; a failure shows as a timeout.
template <typename Condition>
bool Eventually(Condition condition) {
  for (int i = 0; i < 2000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return false;
}

TEST(LeaseKeeperTest, StopsLaunchingAMarginBeforeTheLeaseCouldEnd) {
  ManualClock clock;
  LeaseKeeper keeper({.lease = hours(30), .margin = hours(3), .interval = hours(1000)}, clock,
                     clock.Now(), [] { return absl::StatusOr<Duration>(hours(30)); });
  EXPECT_TRUE(keeper.MayLaunch());
  clock.Advance(hours(26));
  EXPECT_TRUE(keeper.MayLaunch());
  const TimePoint sent = clock.Now();
  clock.Advance(hours(1));
  EXPECT_FALSE(keeper.MayLaunch());
  // What counts is when the renewing call was sent.
  keeper.Renewed(sent);
  EXPECT_TRUE(keeper.MayLaunch());
  clock.Advance(hours(26));
  EXPECT_FALSE(keeper.MayLaunch());
}

TEST(LeaseKeeperTest, RenewsByItselfAndRetriesAfterAFailure) {
  ManualClock clock;
  std::atomic<int> calls{0};
  LeaseKeeper keeper({.lease = seconds(30), .margin = seconds(3), .interval = milliseconds(10)},
                     clock, clock.Now(), [&]() -> absl::StatusOr<Duration> {
                       if (++calls < 3) return absl::UnavailableError("not now");
                       return seconds(30);
                     });
  clock.Advance(seconds(29));
  EXPECT_FALSE(keeper.MayLaunch());
  EXPECT_TRUE(Eventually([&] { return keeper.MayLaunch(); }));
  EXPECT_GE(calls.load(), 3);
  EXPECT_TRUE(keeper.lost().ok());
}

TEST(LeaseKeeperTest, SaysWhenTheLeaseIsGone) {
  ManualClock clock;
  LeaseKeeper keeper({.lease = seconds(30), .margin = seconds(3), .interval = milliseconds(10)},
                     clock, clock.Now(), []() -> absl::StatusOr<Duration> {
                       return ToStatus(MakeError(Reason::kLeaseExpired, "gone"));
                     });
  clock.Advance(seconds(1));
  EXPECT_TRUE(Eventually([&] { return !keeper.lost().ok(); }));
  EXPECT_EQ(ReasonOf(keeper.lost()), Reason::kLeaseExpired);
  EXPECT_FALSE(keeper.MayLaunch());
}

}  // namespace
}  // namespace quire::client
