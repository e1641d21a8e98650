#include "worker/model/weights.h"

#include <gtest/gtest.h>

#include <cmath>

#include "worker/model/model_config.h"
#include "worker/model/transformer.h"

namespace quire::model {
namespace {

TEST(SeededWeightsTest, IsAFunctionOfSeedAndName) {
  const auto values = SeededWeights(5).Load("a.weight", 30, 40);
  ASSERT_TRUE(values.ok());
  EXPECT_EQ(values->size(), 1200u);
  EXPECT_EQ(*values, *SeededWeights(5).Load("a.weight", 30, 40));
  EXPECT_NE(*values, *SeededWeights(6).Load("a.weight", 30, 40));
  EXPECT_NE(*values, *SeededWeights(5).Load("b.weight", 30, 40));
}

TEST(SeededWeightsTest, KeepsTheVarianceOfAMatrixInput) {
  const auto values = SeededWeights(5).Load("model.layers.0.mlp.up_proj.weight", 200, 100);
  ASSERT_TRUE(values.ok());
  double squares = 0;
  for (const float value : *values) squares += double{value} * value;
  EXPECT_NEAR(squares / 200, 1.0, 0.05);
}

TEST(SeededWeightsTest, RefusesAnEmptyShape) {
  EXPECT_EQ(SeededWeights(1).Load("a", 0, 4).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(ModelConfigTest, RefusesShapesTheKernelsCannotServe) {
  const auto code = [](auto change) {
    ModelConfig config;
    change(config);
    SeededWeights weights(1);
    return Transformer::Create(config, weights).status().code();
  };
  EXPECT_EQ(code([](ModelConfig&) {}), absl::StatusCode::kOk);
  EXPECT_EQ(code([](ModelConfig& c) { c.layers = 0; }), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](ModelConfig& c) { c.q_heads = 3; }), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](ModelConfig& c) { c.head_dim = 32; }), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](ModelConfig& c) { c.layer_windows = {4}; }),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](ModelConfig& c) { c.kv_dtype = kernels::DType::kI8; }),
            absl::StatusCode::kInvalidArgument);
}

TEST(ModelConfigTest, FingerprintNamesShapeAndWeights) {
  ModelConfig config;
  const std::string one = Fingerprint(config, "seed 1");
  EXPECT_NE(one, Fingerprint(config, "seed 2"));
  config.layer_windows = FiveToOneWindows(config.layers, 32);
  EXPECT_NE(one, Fingerprint(config, "seed 1"));
}

TEST(ModelConfigTest, EverySixthLayerIsFull) {
  EXPECT_EQ(FiveToOneWindows(7, 32), (std::vector<uint32_t>{32, 32, 32, 32, 32, 0, 32}));
}

}  // namespace
}  // namespace quire::model
