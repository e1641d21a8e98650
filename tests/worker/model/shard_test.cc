// A model in parts computes what the whole one computes, and every rank the same bits.
#include "worker/model/shard.h"

#include <gtest/gtest.h>

#include <barrier>
#include <cmath>
#include <thread>

#include "worker/model/contiguous_kv.h"
#include "worker/model/transformer.h"

namespace quire::model {
namespace {

// Ranks that are threads of one process.
class ThreadReduce {
 public:
  explicit ThreadReduce(int32_t ranks) : parts_(static_cast<size_t>(ranks)), barrier_(ranks) {}

  class Rank final : public AllReduce {
   public:
    Rank(ThreadReduce& all, size_t rank) : all_(all), rank_(rank) {}

    absl::Status Sum(std::span<float> values) override {
      all_.parts_[rank_].assign(values.begin(), values.end());
      all_.barrier_.arrive_and_wait();
      std::fill(values.begin(), values.end(), 0.0f);
      for (const auto& part : all_.parts_) {
        for (size_t i = 0; i < values.size(); ++i) values[i] += part[i];
      }
      all_.barrier_.arrive_and_wait();
      return absl::OkStatus();
    }

   private:
    ThreadReduce& all_;
    const size_t rank_;
  };

 private:
  std::vector<std::vector<float>> parts_;
  std::barrier<> barrier_;
};

ModelConfig Config() {
  ModelConfig config;
  config.layers = 3;
  config.kv_heads = 4;
  config.vocabulary = 100;
  return config;
}

LaunchBatch Batch() {
  LaunchBatch batch;
  const std::vector<TokenId> tokens = {5, 17, 80, 3, 3, 99, 42};
  batch.Add(0, tokens.data(), static_cast<int32_t>(tokens.size()));
  for (int32_t row = 0; row < batch.rows(); ++row) batch.logit_rows.push_back(row);
  return batch;
}

std::vector<std::vector<float>> LogitsOfRanks(int32_t ranks) {
  ThreadReduce reduce(ranks);
  std::vector<std::vector<float>> logits(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      ThreadReduce::Rank own(reduce, static_cast<size_t>(rank));
      SeededWeights weights(3);
      const auto model = *Transformer::CreateShard(Config(), weights, {rank, ranks}, own);
      ContiguousKv kv(model->part());
      const LaunchBatch batch = Batch();
      EXPECT_TRUE(kv.Prepare(batch).ok());
      EXPECT_TRUE(model->Forward(batch, kv, logits[static_cast<size_t>(rank)]).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  return logits;
}

TEST(ShardTest, PartsTogetherComputeTheWhole) {
  SeededWeights weights(3);
  const auto model = *Transformer::Create(Config(), weights);
  ContiguousKv kv(Config());
  const LaunchBatch batch = Batch();
  ASSERT_TRUE(kv.Prepare(batch).ok());
  std::vector<float> whole;
  ASSERT_TRUE(model->Forward(batch, kv, whole).ok());
  for (const int32_t ranks : {1, 2, 4}) {
    const auto logits = LogitsOfRanks(ranks);
    ASSERT_EQ(logits[0].size(), whole.size());
    for (size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(logits[0][i], whole[i], 1e-4f) << ranks;
  }
}

TEST(ShardTest, AllRanksAndAllRunsHaveTheSameBits) {
  const auto first = LogitsOfRanks(2);
  EXPECT_EQ(first[0], first[1]);
  EXPECT_EQ(LogitsOfRanks(2), first);
}

TEST(ShardTest, CutsRowsAndColumns) {
  const std::vector<float> matrix = {1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(RowsOf({1, 2}, matrix, 2, 4), (std::vector<float>{5, 6, 7, 8}));
  EXPECT_EQ(ColumnsOf({1, 2}, matrix, 2, 4), (std::vector<float>{3, 4, 7, 8}));
}

TEST(ShardTest, RefusesWhatCannotBeSharedOut) {
  EXPECT_FALSE(ValidateShards(Config(), 3).ok());
  EXPECT_FALSE(ValidateShards(Config(), 0).ok());
  EXPECT_TRUE(ValidateShards(Config(), 4).ok());
}

}  // namespace
}  // namespace quire::model
