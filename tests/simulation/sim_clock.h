// The one clock of a simulation.
#ifndef QUIRE_TESTS_SIMULATION_SIM_CLOCK_H_
#define QUIRE_TESTS_SIMULATION_SIM_CLOCK_H_

#include <chrono>

#include "cache_service/base/clock.h"
#include "tests/simulation/judge.h"

namespace quire::simulation {

class SimClock final : public Clock {
 public:
  explicit SimClock(const Judge& judge) : judge_(judge) {}

  TimePoint Now() const override { return TimePoint(std::chrono::milliseconds(judge_.now())); }

 private:
  const Judge& judge_;
};

}  // namespace quire::simulation

#endif  // QUIRE_TESTS_SIMULATION_SIM_CLOCK_H_
