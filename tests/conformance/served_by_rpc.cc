// The scenarios of served_scenario.h on a real server: steps on a stream, and as unary calls.
#include "tests/conformance/served_scenario.h"
#include "tests/support/rpc_driver.h"

namespace quire::testing {

INSTANTIATE_TEST_SUITE_P(Stream, LessonExample, ::testing::Values(&MakeStreamDriver));
INSTANTIATE_TEST_SUITE_P(Stream, ForksAndCopies, ::testing::Values(&MakeStreamDriver));
INSTANTIATE_TEST_SUITE_P(Stream, WorkersAndSteps, ::testing::Values(&MakeStreamDriver));
INSTANTIATE_TEST_SUITE_P(Stream, PressureAndFaults, ::testing::Values(&MakeStreamDriver));
INSTANTIATE_TEST_SUITE_P(Unary, LessonExample, ::testing::Values(&MakeUnaryDriver));
INSTANTIATE_TEST_SUITE_P(Unary, ForksAndCopies, ::testing::Values(&MakeUnaryDriver));
INSTANTIATE_TEST_SUITE_P(Unary, WorkersAndSteps, ::testing::Values(&MakeUnaryDriver));
INSTANTIATE_TEST_SUITE_P(Unary, PressureAndFaults, ::testing::Values(&MakeUnaryDriver));

}  // namespace quire::testing
