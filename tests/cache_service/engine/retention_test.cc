#include "cache_service/engine/retention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace quire {
namespace {

using std::chrono::milliseconds;
using Ranges = std::vector<RetentionRange>;

// Priorities of all blocks of a sequence.
std::vector<int> Priorities(const Ranges& ranges, uint32_t block_tokens, uint32_t length) {
  std::vector<int> priorities;
  for (uint32_t block = 0; block * block_tokens < length; ++block) {
    priorities.push_back(
        RetentionOfBlock(ranges, block, block_tokens).value_or(BlockRetention{}).priority);
  }
  return priorities;
}

struct PriorityCase {
  std::string name;
  uint32_t block_tokens;
  uint32_t length;
  Ranges ranges;
  std::vector<int> priorities;
};

class PriorityTest : public ::testing::TestWithParam<PriorityCase> {};

TEST_P(PriorityTest, BlockTakesTheRangeOfItsFirstToken) {
  const PriorityCase& c = GetParam();
  EXPECT_TRUE(ValidateRetention(c.ranges).ok());
  EXPECT_EQ(Priorities(c.ranges, c.block_tokens, c.length), c.priorities);
}

INSTANTIATE_TEST_SUITE_P(
    Scenarios, PriorityTest,
    ::testing::Values(
        PriorityCase{
            "S35_WholeBlocks", 64, 256, {{0, 64, 80, {}}, {64, 128, 50, {}}}, {80, 50, 35, 35}},
        PriorityCase{
            "S36_OddEnds", 32, 127, {{0, 63, 80, {}}, {63, 127, 30, {}}}, {80, 80, 30, 30}},
        PriorityCase{
            "S37_InsideABlock", 32, 128, {{0, 1, 80, {}}, {1, 2, 5, {}}}, {80, 35, 35, 35}},
        PriorityCase{
            "S38_OneTokenOver", 64, 192, {{0, 65, 80, {}}, {65, 129, 30, {}}}, {80, 80, 30}},
        PriorityCase{"S39_OpenEnd",
                     64,
                     256,
                     {{0, 64, 80, {}}, {129, kRangeToEnd, 50, {}}},
                     {80, 35, 35, 50}},
        PriorityCase{"S40_FromTheMiddle", 64, 256, {{127, 193, 80, {}}}, {35, 35, 80, 80}},
        PriorityCase{"NoRanges", 16, 48, {}, {35, 35, 35}},
        PriorityCase{"Extremes", 16, 48, {{0, 16, 0, {}}, {16, 17, 100, {}}}, {0, 100, 35}}),
    [](const ::testing::TestParamInfo<PriorityCase>& c) { return c.param.name; });

TEST(RetentionTest, DurationComesFromTheSameRange) {
  const Ranges ranges = {{0, 4, 80, milliseconds(3)}, {4, 8, 50, {}}};
  EXPECT_EQ(RetentionOfBlock(ranges, 0, 4), (BlockRetention{80, milliseconds(3)}));
  EXPECT_EQ(RetentionOfBlock(ranges, 1, 4), (BlockRetention{50, std::nullopt}));
  EXPECT_EQ(RetentionOfBlock(ranges, 2, 4), std::nullopt);
}

TEST(RetentionTest, FarBlocksDoNotWrapAround) {
  const Ranges ranges = {{0, 64, 80, {}}};
  EXPECT_EQ(RetentionOfBlock(ranges, uint32_t{1} << 28, 16), std::nullopt);
  const Ranges open = {{0, kRangeToEnd, 80, {}}};
  EXPECT_EQ(RetentionOfBlock(open, uint32_t{1} << 30, 16), (BlockRetention{80, std::nullopt}));
}

struct RefusedCase {
  std::string name;
  Ranges ranges;
  std::string field;
};

class RefusedTest : public ::testing::TestWithParam<RefusedCase> {};

TEST_P(RefusedTest, S40_NamesTheField) {
  const Error error = ValidateRetention(GetParam().ranges);
  EXPECT_EQ(error.reason, Reason::kInvalidArgument);
  EXPECT_EQ(error.Detail("field"), GetParam().field);
}

INSTANTIATE_TEST_SUITE_P(
    Table, RefusedTest,
    ::testing::Values(
        RefusedCase{"Reversed", {{8, 4, 80, {}}}, "retention[0].end"},
        RefusedCase{"Empty", {{4, 4, 80, {}}}, "retention[0].end"},
        RefusedCase{"Overlapping", {{0, 8, 80, {}}, {7, 9, 50, {}}}, "retention[1].start"},
        RefusedCase{"OutOfOrder", {{8, 9, 80, {}}, {0, 4, 50, {}}}, "retention[1].start"},
        RefusedCase{"OpenNotLast",
                    {{0, kRangeToEnd, 80, {}}, {kRangeToEnd, kRangeToEnd, 5, {}}},
                    "retention[0].end"},
        RefusedCase{"Priority101", {{0, 4, 5, {}}, {4, 8, 101, {}}}, "retention[1].priority"},
        RefusedCase{"NoDuration", {{0, 4, 5, milliseconds(0)}}, "retention[0].duration"},
        RefusedCase{"NegativeDuration", {{0, 4, 5, milliseconds(-1)}}, "retention[0].duration"}),
    [](const ::testing::TestParamInfo<RefusedCase>& c) { return c.param.name; });

TEST(RetentionTest, TouchingRangesAndTheLimitsPass) {
  EXPECT_TRUE(ValidateRetention(Ranges{}).ok());
  EXPECT_TRUE(
      ValidateRetention(Ranges{{0, 4, 0, Duration(1)}, {4, 5, 100, {}}, {9, kRangeToEnd, 5, {}}})
          .ok());
}

}  // namespace
}  // namespace quire
