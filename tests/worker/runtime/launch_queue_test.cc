// Launches and copies run in the order in which they were queued, chosen tokens included.
#include "worker/runtime/launch_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace quire::runtime {
namespace {

using testing::ElementsAre;

// A model whose next token is always one more than the last row's; keeps what it did.
class CountingExecutor final : public Executor {
 public:
  CountingExecutor() { config_.vocabulary = 10; }

  const model::ModelConfig& config() const override { return config_; }

  absl::Status Map(const client::CacheClient&) override { return absl::OkStatus(); }

  void Unmap() override {}

  absl::Status Copy(std::span<const client::CopyOrder> orders) override {
    done.push_back("copy " + std::to_string(orders[0].source));
    return absl::OkStatus();
  }

  absl::Status Launch(const model::LaunchBatch& batch, std::span<const model::SequenceTables>,
                      std::vector<float>& logits) override {
    done.push_back("launch " + std::to_string(batch.tokens[0]));
    if (batch.tokens[0] == 9) return absl::InternalError("no more tokens");
    logits.assign(10, 0.0f);
    logits[batch.tokens[0] + 1] = 1.0f;
    return absl::OkStatus();
  }

  std::vector<std::string> done;

 private:
  model::ModelConfig config_;
};

// Token 0: the one that `input` holds by then.
std::unique_ptr<LaunchJob> Job(model::TokenId token, std::shared_ptr<TokenId> input,
                               std::shared_ptr<TokenId> output) {
  auto job = std::make_unique<LaunchJob>();
  job->order.batch.Add(0, &token, 1);
  job->order.batch.logit_rows = {0};
  if (input != nullptr) job->inputs.push_back({0, input});
  job->choices.push_back({0, {}, {}, output});
  return job;
}

class LaunchQueueTest : public testing::TestWithParam<bool> {
 protected:
  CountingExecutor executor_;
  LaunchQueue queue_{executor_, GetParam()};
};

TEST_P(LaunchQueueTest, ChoosesTokensThatLaterLaunchesNeed) {
  std::shared_ptr<TokenId> chosen = std::make_shared<TokenId>();
  EXPECT_TRUE(queue_.Launch(Job(3, nullptr, chosen)).ok());
  const client::CopyOrder copy{0, 77, 78, 16};
  EXPECT_TRUE(queue_.Copy({&copy, 1}).ok());
  for (int i = 0; i < 3; ++i) {
    auto next = std::make_shared<TokenId>();
    EXPECT_TRUE(queue_.Launch(Job(0, chosen, next)).ok());
    chosen = next;
  }
  const uint64_t marker = queue_.Marker();
  EXPECT_EQ(queue_.launches(), 4u);
  while (queue_.launches() > 0) {
    auto job = queue_.Take(/*wait=*/true);
    ASSERT_TRUE(job.ok());
    ASSERT_NE(*job, nullptr);
  }
  while (!queue_.Passed(marker)) std::this_thread::yield();
  EXPECT_EQ(*chosen, 7u);
  EXPECT_THAT(executor_.done,
              ElementsAre("launch 3", "copy 77", "launch 4", "launch 5", "launch 6"));
}

TEST_P(LaunchQueueTest, NothingRunsBehindAnErrorUntilItIsDrained) {
  const auto chosen = std::make_shared<TokenId>();
  absl::Status status = queue_.Launch(Job(9, nullptr, chosen));
  const uint64_t marker = queue_.Marker();
  if (status.ok()) status = queue_.Take(/*wait=*/true).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  queue_.Drain();
  EXPECT_EQ(queue_.launches(), 0u);
  EXPECT_TRUE(queue_.Launch(Job(1, nullptr, chosen)).ok());
  ASSERT_TRUE(queue_.Take(/*wait=*/true).ok());
  EXPECT_EQ(*chosen, 2u);
  EXPECT_GT(queue_.Marker(), marker);
}

TEST_P(LaunchQueueTest, TakeWithoutLaunchesIsNothing) {
  for (const bool wait : {false, true}) {
    const auto job = queue_.Take(wait);
    ASSERT_TRUE(job.ok());
    EXPECT_EQ(*job, nullptr);
  }
}

INSTANTIATE_TEST_SUITE_P(Queues, LaunchQueueTest, testing::Bool(),
                         [](const auto& test) { return test.param ? "Background" : "Inline"; });

}  // namespace
}  // namespace quire::runtime
