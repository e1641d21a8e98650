// Time as an injected dependency: the engine never reads the system clock itself.
#ifndef QUIRE_CACHE_SERVICE_BASE_CLOCK_H_
#define QUIRE_CACHE_SERVICE_BASE_CLOCK_H_

#include <chrono>

namespace quire {

using Duration = std::chrono::nanoseconds;
// Monotonic time; the origin is arbitrary.
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint Now() const = 0;
};

class SystemClock final : public Clock {
 public:
  TimePoint Now() const override {
    return std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now());
  }
};

// Deadlines saturate: a duration too long for the clock means "never".
inline TimePoint AddSaturating(TimePoint start, Duration duration) {
  if (duration > TimePoint::max() - start) return TimePoint::max();
  return start + duration;
}

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_BASE_CLOCK_H_
