#include "worker/model/linear.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

namespace quire::model {
namespace {

std::vector<float> Noise(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  std::generate(values.begin(), values.end(), [&] { return normal(random); });
  return values;
}

TEST(LinearTest, MultipliesByTheTransposedWeight) {
  constexpr size_t kRows = 21, kIn = 40, kOut = 24;
  const std::vector<float> weight = Noise(kOut * kIn, 1);
  const std::vector<float> x = Noise(kRows * kIn, 2);
  std::vector<float> y(kRows * kOut);
  Linear(weight, kOut, kIn).Apply(x.data(), kRows, y.data());
  for (size_t row = 0; row < kRows; ++row) {
    for (size_t out = 0; out < kOut; ++out) {
      double sum = 0;
      for (size_t i = 0; i < kIn; ++i) sum += double{x[row * kIn + i]} * weight[out * kIn + i];
      EXPECT_NEAR(y[row * kOut + out], sum, 1e-4);
    }
  }
}

TEST(LinearTest, GivesARowTheSameBitsInEveryPlaceAndBatch) {
  constexpr int32_t kRows = 53;
  SetMatrixThreads(1);
  for (const auto& [in, out] : {std::pair{256, 512}, {512, 256}, {64, 96}, {40, 1000}, {7, 3}}) {
    const auto width = static_cast<size_t>(out);
    const Linear linear(Noise(width * static_cast<size_t>(in), 3), out, in);
    const std::vector<float> x = Noise(static_cast<size_t>(kRows * in), 4);
    std::vector<float> together(kRows * width);
    linear.Apply(x.data(), kRows, together.data());
    for (int32_t row = 0; row < kRows; ++row) {
      std::vector<float> alone(width);
      linear.Apply(x.data() + row * in, 1, alone.data());
      EXPECT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + row * out))
          << in << " to " << out << ", row " << row;
    }
  }
}

}  // namespace
}  // namespace quire::model
