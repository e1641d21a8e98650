// The same model over paged blocks and over a contiguous cache computes the same.
#include "worker/model/transformer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/worker/model/heap_pool.h"
#include "worker/model/contiguous_kv.h"

namespace quire::model {
namespace {

struct Case {
  const char* name;
  kernels::DType dtype;
  bool tied;
  uint32_t window;
  float tolerance;
};

ModelConfig MakeConfig(const Case& param) {
  ModelConfig config;
  config.layers = param.window == 0 ? 2 : 6;
  config.hidden = 128;
  config.ffn = 192;
  config.vocabulary = 100;
  config.tied_head = param.tied;
  config.kv_dtype = param.dtype;
  if (param.window > 0) config.layer_windows = FiveToOneWindows(config.layers, param.window);
  return config;
}

class TransformerTest : public testing::TestWithParam<Case> {
 protected:
  TransformerTest() : config_(MakeConfig(GetParam())), pool_(config_, GroupsOf(config_), 16, 256) {
    SeededWeights weights(11);
    model_ = *Transformer::Create(config_, weights);
    paged_ = *PagedKv::Create(config_, pool_.paged(), CpuKernels());
    tokens_ = RandomTokens(config_, 75, 3);
  }

  // Logits of every token of the sequence, in one launch over contiguous memory.
  std::vector<float> OneShot(const std::vector<TokenId>& tokens) {
    ContiguousKv kv(config_);
    LaunchBatch batch = WithLogits(0, tokens.data(), static_cast<int32_t>(tokens.size()));
    EXPECT_TRUE(kv.Prepare(batch).ok());
    std::vector<float> logits;
    EXPECT_TRUE(model_->Forward(batch, kv, logits).ok());
    return logits;
  }

  static LaunchBatch WithLogits(int32_t position, const TokenId* first, int32_t count) {
    LaunchBatch batch;
    batch.Add(position, first, count);
    for (int32_t row = 0; row < count; ++row) batch.logit_rows.push_back(row);
    return batch;
  }

  // Logits of tokens [begin, end) of tokens_, appended to what the tables hold.
  std::vector<float> Chunk(const std::vector<std::vector<int32_t>>& tables, int32_t begin,
                           int32_t end) {
    LaunchBatch batch = WithLogits(begin, tokens_.data() + begin, end - begin);
    const SequenceTables spans = Spans(tables);
    EXPECT_TRUE(paged_->Prepare(batch, {&spans, 1}).ok());
    std::vector<float> logits;
    const absl::Status status = model_->Forward(batch, *paged_, logits);
    EXPECT_TRUE(status.ok()) << status;
    return logits;
  }

  float Difference(const std::vector<float>& logits, int32_t first_token) const {
    float largest = 0;
    const size_t offset = static_cast<size_t>(first_token * config_.vocabulary);
    for (size_t i = 0; i < logits.size(); ++i) {
      const float difference = std::abs(logits[i] - reference_[offset + i]);
      largest = std::isnan(difference) ? INFINITY : std::max(largest, difference);
    }
    return largest;
  }

  ModelConfig config_;
  HeapPool pool_;
  std::unique_ptr<Transformer> model_;
  std::unique_ptr<PagedKv> paged_;
  std::vector<TokenId> tokens_;
  std::vector<float> reference_;
};

TEST_P(TransformerTest, PagedEqualsContiguousInChunksOfEveryKind) {
  reference_ = OneShot(tokens_);
  const auto whole = pool_.NewTables(75);
  EXPECT_LT(Difference(Chunk(whole, 0, 75), 0), GetParam().tolerance);

  const auto chunked = pool_.NewTables(75);
  EXPECT_LT(Difference(Chunk(chunked, 0, 30), 0), GetParam().tolerance);
  EXPECT_LT(Difference(Chunk(chunked, 30, 33), 30), GetParam().tolerance);
  EXPECT_LT(Difference(Chunk(chunked, 33, 60), 33), GetParam().tolerance);
  for (int32_t i = 60; i < 75; ++i) {
    EXPECT_LT(Difference(Chunk(chunked, i, i + 1), i), GetParam().tolerance) << i;
  }
}

TEST_P(TransformerTest, SequencesOfABatchDoNotTouchEachOther) {
  reference_ = OneShot(tokens_);
  const auto first = pool_.NewTables(75);
  const auto second = pool_.NewTables(40);
  Chunk(first, 0, 74);
  const std::vector<TokenId> other = RandomTokens(config_, 40, 9);
  LaunchBatch batch;
  batch.Add(0, other.data(), 40);
  const int32_t row = batch.Add(74, &tokens_[74], 1);
  batch.logit_rows = {row};
  const SequenceTables tables[] = {Spans(second), Spans(first)};
  ASSERT_TRUE(paged_->Prepare(batch, tables).ok());
  std::vector<float> logits;
  ASSERT_TRUE(model_->Forward(batch, *paged_, logits).ok());
  EXPECT_LT(Difference(logits, 74), GetParam().tolerance);
}

TEST_P(TransformerTest, AWrongBlockShowsInTheLogits) {
  reference_ = OneShot(tokens_);
  const auto tables = pool_.NewTables(75);
  Chunk(tables, 0, 74);
  // Block 3 (tokens 48..63) is inside every window of the cases.
  for (const auto& table : tables) {
    std::memcpy(pool_.block(table[3]), pool_.block(table[0]), pool_.block_bytes());
  }
  EXPECT_GT(Difference(Chunk(tables, 74, 75), 74), 4 * GetParam().tolerance);
}

INSTANTIATE_TEST_SUITE_P(Models, TransformerTest,
                         testing::Values(Case{"Fp32", kernels::DType::kF32, true, 0, 2e-4f},
                                         Case{"Fp32Untied", kernels::DType::kF32, false, 0, 2e-4f},
                                         Case{"Fp32Windows", kernels::DType::kF32, true, 40, 2e-4f},
                                         Case{"Bf16", kernels::DType::kBF16, true, 0, 5e-2f},
                                         Case{"Fp16Windows", kernels::DType::kF16, true, 40,
                                              1e-2f}),
                         [](const auto& test) { return std::string(test.param.name); });

// Counts what is loaded.
class CountedWeights final : public WeightSource {
 public:
  absl::StatusOr<std::vector<float>> Load(std::string_view name, int64_t rows,
                                          int64_t columns) override {
    if (rows > 1) bytes += static_cast<uint64_t>(rows * columns) * sizeof(float);
    return inner_.Load(name, rows, columns);
  }

  std::string identity() const override { return inner_.identity(); }

  uint64_t bytes = 0;

 private:
  SeededWeights inner_{1};
};

TEST(ModelConfigTest, WeightBytesAreThoseOfAllMatrices) {
  for (const bool tied : {true, false}) {
    ModelConfig config;
    config.layers = 3;
    config.ffn = 96;
    config.tied_head = tied;
    CountedWeights weights;
    ASSERT_TRUE(Transformer::Create(config, weights).ok());
    EXPECT_EQ(WeightBytes(config), weights.bytes);
  }
}

TEST(TransformerInputTest, RefusesATokenOutsideTheVocabulary) {
  ModelConfig config;
  config.layers = 1;
  config.vocabulary = 50;
  SeededWeights weights(1);
  const auto model = *Transformer::Create(config, weights);
  ContiguousKv kv(config);
  LaunchBatch batch;
  const TokenId token = 50;
  batch.Add(0, &token, 1);
  ASSERT_TRUE(kv.Prepare(batch).ok());
  std::vector<float> logits;
  EXPECT_EQ(model->Forward(batch, kv, logits).code(), absl::StatusCode::kInvalidArgument);
}

TEST(ContiguousKvTest, CopiesAreIndependentSequences) {
  ModelConfig config;
  config.layers = 1;
  SeededWeights weights(1);
  const auto model = *Transformer::Create(config, weights);
  const auto step = [&](ContiguousKv& kv, TokenId token) {
    LaunchBatch batch;
    batch.Add(kv.length(), &token, 1);
    batch.logit_rows = {0};
    EXPECT_TRUE(kv.Prepare(batch).ok());
    std::vector<float> logits;
    EXPECT_TRUE(model->Forward(batch, kv, logits).ok());
    return logits;
  };
  ContiguousKv a(config);
  step(a, 1);
  ContiguousKv b = a;
  const std::vector<float> a2 = step(a, 2);
  step(b, 3);
  EXPECT_EQ(a.length(), 2);
  ContiguousKv c(config);
  step(c, 1);
  EXPECT_EQ(step(c, 2), a2);
  LaunchBatch gap;
  const TokenId token = 1;
  gap.Add(5, &token, 1);
  EXPECT_EQ(c.Prepare(gap).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace quire::model
