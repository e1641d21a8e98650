// Which priority a block takes from token ranges, and how long it keeps it.
#include <chrono>
#include <optional>
#include <vector>

#include "gmock/gmock.h"
#include "tests/conformance/pressure.h"
#include "tests/support/scenario.h"

namespace quire::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr SequenceHandle kA = 1;
constexpr SequenceHandle kB = 2;

using Ranges = std::vector<RetentionRange>;

std::vector<int> PrioritiesByRule(const Ranges& ranges, uint32_t block_tokens, uint32_t length) {
  std::vector<int> priorities;
  for (uint32_t block = 0; block * block_tokens < length; ++block) {
    priorities.push_back(
        RetentionOfBlock(ranges, block, block_tokens).value_or(BlockRetention{}).priority);
  }
  return priorities;
}

// The sealed blocks of a finished prompt go from the deepest up, each counted in the band of its
// priority: what the rule assigns is what the engine evicts by.
void ExpectPriorities(uint32_t block_tokens, uint32_t length, const Ranges& ranges,
                      const std::vector<int>& expected) {
  EXPECT_EQ(PrioritiesByRule(ranges, block_tokens, length), expected);
  for (const bool at_finish : {false, true}) {
    FacadeStory story(Pool(block_tokens, 8));
    Worker& w = story.Attach("w");
    w.Prompt(kA, Text(1, length), {.retention = at_finish ? Ranges{} : ranges});
    w.Finish(kA, false, at_finish ? ranges : Ranges{});
    Pressure pressure(story, w);
    std::vector<int> bands;
    std::vector<int> expected_bands;
    for (uint32_t sealed = length / block_tokens; sealed > 0; --sealed) {
      bands.push_back(pressure.EvictOne());
      expected_bands.push_back(expected[sealed - 1] / 10);
    }
    EXPECT_EQ(bands, expected_bands) << (at_finish ? "at finish" : "at begin");
  }
}

TEST(Retention, S35_RangesThatFillBlocks) {
  ExpectPriorities(64, 256, {{0, 64, 80, {}}, {64, 128, 50, {}}}, {80, 50, 35, 35});
}

TEST(Retention, S36_ARangeThatEndsInsideABlock) {
  ExpectPriorities(32, 127, {{0, 63, 80, {}}, {63, 127, 30, {}}}, {80, 80, 30, 30});
}

TEST(Retention, S37_OnlyTheFirstTokenDecides) {
  ExpectPriorities(32, 128, {{0, 1, 80, {}}, {1, 2, 5, {}}}, {80, 35, 35, 35});
}

TEST(Retention, S38_ARangeOneTokenLonger) {
  ExpectPriorities(64, 192, {{0, 65, 80, {}}, {65, 129, 30, {}}}, {80, 80, 30});
}

TEST(Retention, S39_AnOpenLastRange) {
  ExpectPriorities(64, 256, {{0, 64, 80, {}}, {129, kRangeToEnd, 50, {}}}, {80, 35, 35, 50});
}

TEST(Retention, S40_BlockThreeStartsInsideTheRange) {
  ExpectPriorities(64, 256, {{127, 193, 80, {}}}, {35, 35, 80, 80});
}

TEST(Retention, S40_WrongRangesAreInvalid) {
  const std::vector<std::pair<Ranges, std::string>> cases = {
      {{{5, 4, 35, {}}}, "retention[0]"},
      {{{5, 5, 35, {}}}, "retention[0]"},
      {{{0, 10, 35, {}}, {9, 20, 35, {}}}, "retention[1]"},
      {{{10, 20, 35, {}}, {0, 5, 35, {}}}, "retention[1]"},
      {{{0, kRangeToEnd, 35, {}}, {100, 110, 35, {}}}, "retention["},
      {{{0, 10, 101, {}}}, "retention[0].priority"},
      {{{0, 10, 35, milliseconds(0)}}, "retention[0].duration"},
      {{{0, 10, 35, milliseconds(-1)}}, "retention[0].duration"}};
  FacadeStory story(Pool(16, 10));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 48));
  const StateOf before = Snapshot(story.driver(), {Text(1, 49)});
  for (const auto& [ranges, field] : cases) {
    for (const Batch& batch : {Batch().Begin(kB, Text(2, 48), {.retention = ranges}),
                               Batch().Finish(kA, false, ranges)}) {
      const Error error = ErrorOf(w.Do(batch));
      EXPECT_EQ(error.reason, Reason::kInvalidArgument) << field;
      EXPECT_THAT(std::string(error.Detail("field")), HasSubstr(field));
    }
  }
  w.Settle();
  EXPECT_EQ(Snapshot(story.driver(), {Text(1, 49)}), before);
}

// One idle block of its own text and priority, let go now.
void LeaveIdle(Worker& w, uint32_t text, uint32_t priority,
               std::optional<Duration> duration = std::nullopt) {
  w.Prompt(text, Text(text, 16), {.retention = {{0, kRangeToEnd, priority, duration}}});
  w.Finish(text);
}

bool IsResident(Story& story, uint32_t text) { return story.Peek(Text(text, 17)) > 0; }

TEST(Retention, S41_TheLowestPriorityGoesFirst) {
  FacadeStory story(Pool(16, 6));
  Worker& w = story.Attach("w");
  LeaveIdle(w, 80, 80);
  LeaveIdle(w, 5, 5);
  LeaveIdle(w, 35, 35);
  Pressure pressure(story, w);
  for (const uint32_t gone : {5u, 35u, 80u}) {
    EXPECT_TRUE(IsResident(story, gone));
    EXPECT_EQ(pressure.EvictOne(), static_cast<int>(gone / 10));
    EXPECT_FALSE(IsResident(story, gone));
  }
}

TEST(Retention, S41_AtEqualPriorityTheFirstLetGoGoesFirst) {
  FacadeStory story(Pool(16, 9));
  Worker& w = story.Attach("w");
  w.Prompt(1, Text(1, 48));
  w.Prompt(2, Text(2, 48));
  w.Finish(2);
  w.Finish(1);
  Pressure pressure(story, w);
  for (const auto& [second, first] : std::vector<std::pair<uint32_t, uint32_t>>{
           {32, 48}, {16, 48}, {0, 48}, {0, 32}, {0, 16}, {0, 0}}) {
    pressure.EvictOne();
    EXPECT_EQ(story.Peek(Text(2, 49)), second);
    EXPECT_EQ(story.Peek(Text(1, 49)), first);
  }
}

TEST(Retention, S42_AnExpiredPriorityIsTheDefault) {
  for (const auto& [at, victim] :
       std::vector<std::pair<int, uint32_t>>{{5, 50}, {7, 50}, {8, 80}, {9, 80}}) {
    FacadeStory story(Pool(16, 4));
    Worker& w = story.Attach("w");
    story.Pass(milliseconds(5));
    LeaveIdle(w, 80, 80, milliseconds(3));
    LeaveIdle(w, 50, 50, milliseconds(8));
    story.Pass(milliseconds(at - 5));
    Pressure(story, w).EvictOne();
    EXPECT_FALSE(IsResident(story, victim)) << "t = " << at;
    EXPECT_TRUE(IsResident(story, victim == 50 ? 80 : 50)) << "t = " << at;
  }
}

// Text 100 at 100 for 30 s, reused after 10 s; `reuse` is the retention of the reuse.
int PriorityBandAt(Duration at, const Ranges& reuse) {
  FacadeStory story(Pool(16, 3));
  AttachParams params = AttachAs("w");
  params.lease_duration = std::chrono::minutes(5);
  Worker& w = story.Attach(params);
  w.Prompt(kA, Text(100, 16), {.retention = {{0, kRangeToEnd, 100, seconds(30)}}});
  w.Finish(kA);
  story.Pass(seconds(10));
  EXPECT_EQ(w.Begin(kB, Text(100, 17), {.retention = reuse}).reused_tokens, 16u);
  w.Finish(kB);
  story.Pass(at - seconds(10));
  return Pressure(story, w).EvictOne();
}

TEST(Retention, S43_ReuseWithoutRetentionRestartsTheClock) {
  EXPECT_EQ(PriorityBandAt(seconds(30), {}), 10);
  EXPECT_EQ(PriorityBandAt(seconds(40) - milliseconds(1), {}), 10);
  EXPECT_EQ(PriorityBandAt(seconds(40), {}), 3);
}

TEST(Retention, S43_ReuseWithRetentionReplacesPriorityAndDuration) {
  EXPECT_EQ(PriorityBandAt(seconds(10), {{0, kRangeToEnd, 20, {}}}), 2);
  EXPECT_EQ(PriorityBandAt(seconds(100), {{0, kRangeToEnd, 90, {}}}), 9);
  EXPECT_EQ(PriorityBandAt(seconds(10), {{16, kRangeToEnd, 20, {}}}), 10) << "not covered";
}

}  // namespace
}  // namespace quire::testing
