#include "worker/runtime/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "worker/runtime/drafter.h"

namespace quire::runtime {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const std::vector<float> kLogits = {0.0f, 2.0f, 1.0f, 2.0f};

TEST(SamplerTest, GreedyTakesTheFirstOfTheLargest) {
  EXPECT_EQ(Sample(kLogits, {.temperature = 0}, {}), 1u);
}

TEST(SamplerTest, TheSamePlaceGivesTheSameToken) {
  const SamplingParams params{.temperature = 1, .seed = 3};
  bool other_sample = false, other_position = false, other_seed = false;
  for (uint32_t position = 0; position < 50; ++position) {
    const TokenId token = Sample(kLogits, params, {0, position});
    EXPECT_EQ(token, Sample(kLogits, params, {0, position}));
    other_sample |= token != Sample(kLogits, params, {1, position});
    other_position |= token != Sample(kLogits, params, {0, position + 100});
    other_seed |= token != Sample(kLogits, {.temperature = 1, .seed = 4}, {0, position});
  }
  EXPECT_TRUE(other_sample && other_position && other_seed);
}

TEST(SamplerTest, FollowsTheSoftmaxAtItsTemperature) {
  const float temperature = 0.8f;
  std::vector<double> expected;
  double sum = 0;
  for (const float logit : kLogits) {
    expected.push_back(std::exp(double{logit} / double{temperature}));
    sum += expected.back();
  }
  constexpr uint32_t kDraws = 40000;
  std::vector<uint32_t> counts(kLogits.size());
  for (uint32_t i = 0; i < kDraws; ++i) {
    ++counts[Sample(kLogits, {.temperature = temperature, .seed = 9}, {0, i})];
  }
  for (size_t token = 0; token < kLogits.size(); ++token) {
    // Four standard deviations of a draw with probability 1/2 are 0.01.
    EXPECT_NEAR(static_cast<double>(counts[token]) / kDraws, expected[token] / sum, 0.01);
  }
}

TEST(BeamTest, TakesTheBestContinuationsOfAllBeams) {
  const std::vector<float> a = {1.0f, 0.0f, -1.0f};
  const std::vector<float> b = {0.5f, 3.0f, 0.0f};
  const BeamState beams[] = {{-1.0, a}, {-2.0, b}};
  std::vector<BeamChoice> all;
  for (uint32_t parent = 0; parent < 2; ++parent) {
    for (TokenId token = 0; token < 3; ++token) {
      all.push_back({parent, token, BeamScore(beams[parent], token)});
    }
  }
  std::sort(all.begin(), all.end(),
            [](const BeamChoice& x, const BeamChoice& y) { return x.score > y.score; });
  all.resize(4);
  EXPECT_EQ(SelectBeams(beams, 4), all);
  EXPECT_EQ(SelectBeams(beams, 100).size(), 6u);
}

TEST(BeamTest, ScoresAreLogProbabilities) {
  const std::vector<float> logits = {0.0f, 0.0f};
  EXPECT_NEAR(BeamScore({-1.0, logits}, 0), -1.0 + std::log(0.5), 1e-9);
}

TEST(BeamTest, EqualScoresGoToTheLowerParentAndToken) {
  const std::vector<float> logits = {1.0f, 1.0f};
  const BeamState beams[] = {{0, logits}, {0, logits}};
  const std::vector<BeamChoice> chosen = SelectBeams(beams, 3);
  ASSERT_EQ(chosen.size(), 3u);
  EXPECT_EQ(chosen[0].parent * 10 + chosen[0].token, 0u);
  EXPECT_EQ(chosen[1].parent * 10 + chosen[1].token, 1u);
  EXPECT_EQ(chosen[2].parent * 10 + chosen[2].token, 10u);
}

TEST(DrafterTest, ContinuesTheLastOccurrenceOfTheFinalPair) {
  const std::vector<TokenId> tokens = {5, 6, 1, 5, 6, 2, 3, 4, 5, 6};
  EXPECT_THAT(LookUpDrafts(tokens, 3), ElementsAre(2, 3, 4));
  EXPECT_THAT(LookUpDrafts(tokens, 1), ElementsAre(2));
  EXPECT_THAT(LookUpDrafts(tokens, 0), IsEmpty());
  EXPECT_THAT(LookUpDrafts(std::vector<TokenId>{1, 2, 3}, 3), IsEmpty());
  EXPECT_THAT(LookUpDrafts(std::vector<TokenId>{1, 1, 1}, 3), ElementsAre(1));
  EXPECT_THAT(LookUpDrafts(std::vector<TokenId>{1}, 3), IsEmpty());
}

}  // namespace
}  // namespace quire::runtime
