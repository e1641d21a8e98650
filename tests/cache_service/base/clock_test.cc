#include "cache_service/base/clock.h"

#include <gtest/gtest.h>

#include "tests/support/fake_clock.h"

namespace quire {
namespace {

using std::chrono::milliseconds;

TEST(ClockTest, DeadlinesSaturate) {
  const TimePoint start{milliseconds(5)};
  EXPECT_EQ(AddSaturating(start, milliseconds(3)), TimePoint(milliseconds(8)));
  EXPECT_EQ(AddSaturating(start, Duration::max()), TimePoint::max());
  EXPECT_EQ(AddSaturating(TimePoint::max(), milliseconds(1)), TimePoint::max());
  EXPECT_EQ(AddSaturating(TimePoint::max() - milliseconds(1), milliseconds(1)), TimePoint::max());
}

TEST(ClockTest, FakeClockMovesOnlyWhenTold) {
  FakeClock clock;
  EXPECT_EQ(clock.Now(), TimePoint());
  clock.Advance(milliseconds(7));
  EXPECT_EQ(clock.Now(), TimePoint(milliseconds(7)));
  clock.Set(milliseconds(40));
  EXPECT_EQ(clock.Now(), TimePoint(milliseconds(40)));
}

TEST(ClockTest, SystemClockNeverGoesBack) {
  const SystemClock clock;
  TimePoint last = clock.Now();
  for (int i = 0; i < 1000; ++i) {
    const TimePoint now = clock.Now();
    EXPECT_GE(now, last);
    last = now;
  }
}

}  // namespace
}  // namespace quire
