#include "cache_service/engine/layer_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string>

#include "cache_service/base/error.h"

namespace quire {
namespace {

using ::testing::ElementsAre;

struct PlanCase {
  std::string name;
  // Count and window of the layers, repeated in this order.
  std::vector<std::pair<uint32_t, uint32_t>> layers;
  uint32_t groups;
  uint32_t layers_per_block;
  uint32_t padding;
};

class PlanTest : public ::testing::TestWithParam<PlanCase> {};

TEST_P(PlanTest, GroupsHaveEqualBytes) {
  std::vector<uint32_t> windows;
  for (const auto& [count, window] : GetParam().layers) {
    windows.insert(windows.end(), count, window);
  }
  const auto plan = PlanGroups(windows);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->groups.size(), GetParam().groups);
  EXPECT_EQ(plan->layers_per_block, GetParam().layers_per_block);
  EXPECT_EQ(std::accumulate(plan->padding_layers.begin(), plan->padding_layers.end(), 0u),
            GetParam().padding);
  // Every layer is in exactly one group of its window, and groups fill a block with their padding.
  std::vector<uint32_t> seen;
  for (size_t g = 0; g < plan->groups.size(); ++g) {
    const GroupSpec& group = plan->groups[g];
    EXPECT_EQ(group.layers.size() + plan->padding_layers[g], plan->layers_per_block);
    for (const uint32_t layer : group.layers) EXPECT_EQ(windows[layer], group.window_tokens);
    seen.insert(seen.end(), group.layers.begin(), group.layers.end());
  }
  std::sort(seen.begin(), seen.end());
  std::vector<uint32_t> all(windows.size());
  std::iota(all.begin(), all.end(), 0u);
  EXPECT_EQ(seen, all);
}

INSTANTIATE_TEST_SUITE_P(
    Table, PlanTest,
    ::testing::Values(PlanCase{"S52_FifteenWindowThreeFull", {{15, 1024}, {3, 0}}, 6, 3, 0},
                      PlanCase{"OneWindowIsOneGroup", {{32, 0}}, 1, 32, 0},
                      PlanCase{"OneLayer", {{1, 4}}, 1, 1, 0},
                      PlanCase{"HalfAndHalf", {{12, 128}, {12, 0}}, 2, 12, 0},
                      // An exact split would need 34 groups of one layer.
                      PlanCase{"PadsALittle", {{29, 512}, {5, 0}}, 6, 6, 2},
                      PlanCase{"ThreeWindows", {{8, 0}, {8, 512}, {16, 4096}}, 4, 8, 0},
                      PlanCase{"NoPaddingForFewLayers", {{2, 8}, {3, 0}}, 5, 1, 0},
                      PlanCase{"MostLayers", {{1024, 0}}, 1, 1024, 0}),
    [](const ::testing::TestParamInfo<PlanCase>& c) { return c.param.name; });

TEST(PlanGroupsTest, FullGroupsComeFirstAndLayersKeepTheirOrder) {
  const std::vector<uint32_t> windows = {8, 8, 0, 8, 8, 0};
  const auto plan = PlanGroups(windows);
  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(plan->groups,
              ElementsAre(GroupSpec{0, {2, 5}}, GroupSpec{8, {0, 1}}, GroupSpec{8, {3, 4}}));
}

TEST(PlanGroupsTest, RefusesNoLayersAndTooMany) {
  EXPECT_EQ(ReasonOf(PlanGroups({}).status()), Reason::kInvalidArgument);
  const std::vector<uint32_t> many(1025, 0);
  const Error error = FromStatus(PlanGroups(many).status());
  EXPECT_EQ(error.Detail("field"), "layer_windows");
  EXPECT_EQ(error.Detail("given"), "1025");
  EXPECT_EQ(error.Detail("limit"), "1024");
}

TEST(FirstNeededBlockTest, S49_WindowFourBlocksOfTwo) {
  const std::vector<std::pair<uint32_t, uint32_t>> table = {{0, 0}, {3, 0}, {4, 0}, {5, 1}, {6, 1},
                                                            {7, 2}, {8, 2}, {9, 3}, {11, 4}};
  for (const auto& [length, first] : table) {
    EXPECT_EQ(FirstNeededBlock(4, length, 2), first) << length;
  }
}

TEST(FirstNeededBlockTest, S52_TenThousandTokens) {
  EXPECT_EQ(FirstNeededBlock(0, 10'000, 16), 0u);
  EXPECT_EQ(FirstNeededBlock(1024, 10'000, 16), 561u);
}

TEST(FirstNeededBlockTest, SlackKeepsBlocksLonger) {
  EXPECT_EQ(FirstNeededBlock(4, 11, 2, 3), 2u);
  EXPECT_EQ(FirstNeededBlock(4, 5, 2, 1000), 0u);
  EXPECT_EQ(FirstNeededBlock(4, 5, 2, 0xFFFFFFFFu), 0u);
  EXPECT_EQ(FirstNeededBlock(0xFFFFFFFFu, 0xFFFFFFFFu, 2), 0u);
}

// Which tokens the next position sees, by the definition of a window.
uint32_t FirstNeededByDefinition(uint32_t window, uint32_t length, uint32_t block_tokens) {
  for (uint32_t token = 0; token <= length; ++token) {
    if (token + window > length) return token / block_tokens;
  }
  return 0;
}

TEST(FirstNeededBlockTest, EqualsTheDefinitionOfAWindow) {
  for (uint32_t window = 1; window < 12; ++window) {
    for (uint32_t block_tokens : {1u, 2u, 4u, 8u}) {
      for (uint32_t length = 0; length < 50; ++length) {
        EXPECT_EQ(FirstNeededBlock(window, length, block_tokens),
                  FirstNeededByDefinition(window, length, block_tokens))
            << window << " " << block_tokens << " " << length;
      }
    }
  }
}

TEST(LongestWindowHitTest, S50_TwelvePositions) {
  const std::array<bool, 12> all = {1, 1, 0, 1, 0, 0, 1, 1, 0, 1, 1, 1};
  EXPECT_EQ(LongestWindowHit(all, 4, 2), 12u);
  const std::array<bool, 12> none_last = {1, 1, 0, 1, 0, 0, 1, 1, 0, 1, 0, 0};
  EXPECT_EQ(LongestWindowHit(none_last, 4, 2), 8u);
  const std::array<bool, 12> gap_last = {1, 1, 0, 1, 0, 0, 1, 1, 0, 1, 0, 1};
  EXPECT_EQ(LongestWindowHit(gap_last, 4, 2), 8u);
  const std::array<bool, 12> first_only = {1};
  EXPECT_EQ(LongestWindowHit(first_only, 4, 2), 1u);
}

TEST(LongestWindowHitTest, FullAttentionNeedsEveryBlock) {
  const std::array<bool, 6> gap = {1, 1, 1, 0, 1, 1};
  EXPECT_EQ(LongestWindowHit(gap, 0, 4), 3u);
  EXPECT_EQ(LongestWindowHit({}, 0, 4), 0u);
}

TEST(MostBlocksHeldTest, FullAttentionHoldsAll) {
  EXPECT_EQ(MostBlocksHeld({}, 10'000, 16, 16), 625u);
  EXPECT_EQ(MostBlocksHeld({}, 0, 16, 16), 0u);
}

TEST(MostBlocksHeldTest, WindowHoldsWindowAndOneChunk) {
  for (uint32_t window = 1; window < 10; ++window) {
    for (uint32_t chunk = 1; chunk < 10; ++chunk) {
      for (uint64_t tokens = 0; tokens < 40; ++tokens) {
        const uint32_t bs = 4;
        // Commit c, then enter up to `chunk` more, for every c.
        uint64_t most = 0;
        for (uint32_t c = 0; c <= tokens; ++c) {
          const uint64_t end = std::min<uint64_t>(tokens, uint64_t{c} + chunk);
          const uint64_t held = (end + bs - 1) / bs;
          const uint32_t first = FirstNeededBlock(window, c, bs);
          if (held > first) most = std::max(most, held - first);
        }
        EXPECT_EQ(MostBlocksHeld({window, {}}, tokens, chunk, bs), most)
            << window << " " << chunk << " " << tokens;
      }
    }
  }
}

}  // namespace
}  // namespace quire
