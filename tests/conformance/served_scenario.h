// Base of the scenarios that run in process and through a real server: the test program decides
// which by instantiating the suite with a driver factory.
#ifndef QUIRE_TESTS_CONFORMANCE_SERVED_SCENARIO_H_
#define QUIRE_TESTS_CONFORMANCE_SERVED_SCENARIO_H_

#include "gtest/gtest.h"
#include "tests/support/engine_driver.h"

namespace quire::testing {

class ServedScenario : public ::testing::TestWithParam<DriverFactory> {
 protected:
  std::unique_ptr<EngineDriver> Serve(const EngineOptions& options) { return GetParam()(options); }
};

class LessonExample : public ServedScenario {};

class ForksAndCopies : public ServedScenario {};

class WorkersAndSteps : public ServedScenario {};

class PressureAndFaults : public ServedScenario {};

}  // namespace quire::testing

#endif  // QUIRE_TESTS_CONFORMANCE_SERVED_SCENARIO_H_
