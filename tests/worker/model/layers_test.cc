#include "worker/model/layers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

namespace quire::model {
namespace {

float Dot(const std::vector<float>& a, const std::vector<float>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0f);
}

std::vector<float> Ramp(size_t count, float start) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = std::sin(start + 0.7f * static_cast<float>(i));
  return values;
}

TEST(LayersTest, RmsNormDividesByTheRootMeanSquare) {
  const std::vector<float> x = {3, 4, 0, 0, 1, 1, 1, 1};
  const std::vector<float> weight = {1, 2, 1, 1};
  std::vector<float> y(x.size());
  RmsNorm(x.data(), 2, weight, 0.0f, y.data());
  EXPECT_NEAR(y[0], 3 / 2.5f, 1e-6);
  EXPECT_NEAR(y[1], 2 * 4 / 2.5f, 1e-6);
  EXPECT_NEAR(y[4], 1, 1e-6);
  EXPECT_NEAR(y[5], 2, 1e-6);
}

TEST(LayersTest, SwiGluGatesByTheSigmoid) {
  std::vector<float> gate = {0, 1, -20};
  const std::vector<float> up = {5, 2, 3};
  SwiGlu(gate, up);
  EXPECT_NEAR(gate[0], 0, 1e-6);
  EXPECT_NEAR(gate[1], 2 / (1 + std::exp(-1.0f)), 1e-6);
  EXPECT_NEAR(gate[2], 0, 1e-5);
}

TEST(RopeTest, LeavesPositionZeroAndKeepsLengths) {
  const Rope rope(64, 10000);
  const std::vector<float> x = Ramp(64, 1);
  std::vector<float> at_zero = x;
  rope.Apply(std::vector<int32_t>{0}, 1, at_zero.data());
  EXPECT_EQ(at_zero, x);
  std::vector<float> far = x;
  rope.Apply(std::vector<int32_t>{12345}, 1, far.data());
  EXPECT_NE(far, x);
  EXPECT_NEAR(Dot(far, far), Dot(x, x), 1e-3);
}

TEST(RopeTest, ScoresDependOnTheDistanceOnly) {
  const Rope rope(64, 10000);
  const auto score = [&](int32_t q_position, int32_t k_position) {
    std::vector<float> q = Ramp(64, 1);
    std::vector<float> k = Ramp(64, 2);
    rope.Apply(std::vector<int32_t>{q_position}, 1, q.data());
    rope.Apply(std::vector<int32_t>{k_position}, 1, k.data());
    return Dot(q, k);
  };
  EXPECT_NEAR(score(10, 3), score(1010, 1003), 1e-3);
  EXPECT_GT(std::abs(score(10, 3) - score(10, 4)), 1e-2);
}

TEST(RopeTest, RotatesEveryHeadOfAPositionAlike) {
  const Rope rope(64, 10000);
  std::vector<float> one = Ramp(64, 1);
  std::vector<float> two = one;
  two.insert(two.end(), one.begin(), one.end());
  rope.Apply(std::vector<int32_t>{9}, 1, one.data());
  rope.Apply(std::vector<int32_t>{9}, 2, two.data());
  EXPECT_TRUE(std::equal(one.begin(), one.end(), two.begin()));
  EXPECT_TRUE(std::equal(one.begin(), one.end(), two.begin() + 64));
}

}  // namespace
}  // namespace quire::model
