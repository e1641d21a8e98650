// The scenarios of served_scenario.h on an engine in this process.
#include "tests/conformance/served_scenario.h"
#include "tests/support/facade_driver.h"

namespace quire::testing {

INSTANTIATE_TEST_SUITE_P(Facade, LessonExample, ::testing::Values(&MakeFacadeDriver));
INSTANTIATE_TEST_SUITE_P(Facade, ForksAndCopies, ::testing::Values(&MakeFacadeDriver));
INSTANTIATE_TEST_SUITE_P(Facade, WorkersAndSteps, ::testing::Values(&MakeFacadeDriver));
INSTANTIATE_TEST_SUITE_P(Facade, PressureAndFaults, ::testing::Values(&MakeFacadeDriver));

}  // namespace quire::testing
