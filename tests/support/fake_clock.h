// A clock that moves only when told to. Good for every engine test; not for code that waits.
#ifndef QUIRE_TESTS_SUPPORT_FAKE_CLOCK_H_
#define QUIRE_TESTS_SUPPORT_FAKE_CLOCK_H_

#include <atomic>

#include "cache_service/base/clock.h"

namespace quire {

class FakeClock final : public Clock {
 public:
  TimePoint Now() const override { return TimePoint(Duration(now_.load())); }

  void Advance(Duration duration) { now_ += duration.count(); }

  void Set(Duration since_origin) { now_ = since_origin.count(); }

 private:
  std::atomic<Duration::rep> now_{0};
};

}  // namespace quire

#endif  // QUIRE_TESTS_SUPPORT_FAKE_CLOCK_H_
