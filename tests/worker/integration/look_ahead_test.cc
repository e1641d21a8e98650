// Decoding that waits neither for the server nor for sampled values, and drafts: how launches are
// made must not show in the text.
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "tests/worker/integration/worker_fixture.h"
#include "worker/runtime/drafter.h"

namespace quire::runtime {
namespace {

const std::vector<std::string> kRoomy = {"--device_memory_bytes=16MiB",
                                         "--max_sequence_tokens=512"};

Request LongAnswer(float temperature) {
  Request request;
  request.prompt = std::vector<TokenId>(20, 3);
  request.new_tokens = 200;
  request.sampling = {temperature, 5};
  return request;
}

std::vector<RequestResult> RunToEnd(TestWorker& worker) {
  while (!worker.scheduler().idle()) EXPECT_TRUE(worker.scheduler().RunOnce().ok());
  return worker.scheduler().TakeResults();
}

// Holds each launch back while it is closed, though not for ever: a scheduler that has nothing else
// to launch waits for it.
class Gate {
 public:
  explicit Gate(std::chrono::milliseconds patience) : patience_(patience) {}

  void Close() { Set(false); }

  void Open() { Set(true); }

  void Pass() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, patience_, [this] { return open_; });
  }

 private:
  void Set(bool open) {
    const std::lock_guard lock(mutex_);
    open_ = open;
    changed_.notify_all();
  }

  const std::chrono::milliseconds patience_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = true;
};

class GatedExecutor final : public Executor {
 public:
  GatedExecutor(std::unique_ptr<Executor> inner, Gate& gate)
      : inner_(std::move(inner)), gate_(gate) {}

  const model::ModelConfig& config() const override { return inner_->config(); }

  absl::Status Map(const client::CacheClient& client) override { return inner_->Map(client); }

  void Unmap() override { inner_->Unmap(); }

  absl::Status Copy(std::span<const client::CopyOrder> orders) override {
    return inner_->Copy(orders);
  }

  absl::Status Launch(const model::LaunchBatch& batch,
                      std::span<const model::SequenceTables> tables,
                      std::vector<float>& logits) override {
    gate_.Pass();
    return inner_->Launch(batch, tables, logits);
  }

 private:
  const std::unique_ptr<Executor> inner_;
  Gate& gate_;
};

auto Gated(Gate& gate) {
  return [&gate](std::unique_ptr<Executor> inner) {
    return std::make_unique<GatedExecutor>(std::move(inner), gate);
  };
}

class LookAheadTest : public testing::TestWithParam<uint32_t> {};

TEST_P(LookAheadTest, DecodingNeverWaitsForTheServer) {
  ServerProcess server(kRoomy);
  WorkerSetup setup = SmallSetup(server);
  setup.scheduler.lag = GetParam();
  // A launch takes as long as of a large model, so that a server which gets no processor for a
  // moment is not late.
  Gate gate(std::chrono::milliseconds(20));
  gate.Close();
  setup.wrap = Gated(gate);
  TestWorker worker(setup);
  Request request = LongAnswer(0.8f);
  request.new_tokens = 60;
  worker.scheduler().Add(request);
  const auto results = RunToEnd(worker);
  // The first token's slot is asked for with the last chunk of the prompt and may come after it;
  // until then each launch that comes back finds it missing.
  EXPECT_LE(worker.stats().launch_waits, 2u + GetParam());
  EXPECT_EQ(worker.stats().shortages, 0u);
  if (GetParam() == 0) {
    EXPECT_EQ(worker.stats().unknown_rows, 0u);
  }
  EXPECT_TRUE(worker.Verify(results).identical());
}

INSTANTIATE_TEST_SUITE_P(Lags, LookAheadTest, testing::Values(0u, 1u, 2u));

TEST(BlockedTimeTest, TellsSendingFromWaiting) {
  ServerProcess server(kRoomy);
  for (const client::StepMode mode : {client::StepMode::kStream, client::StepMode::kUnary}) {
    WorkerSetup setup = SmallSetup(server);
    setup.mode = mode;
    TestWorker worker(setup);
    worker.scheduler().Add(LongAnswer(0));
    RunToEnd(worker);
    const BlockedTime& blocked = worker.stats().blocked;
    EXPECT_GT(blocked.beginning, Duration::zero());
    if (mode == client::StepMode::kStream) {
      EXPECT_GT(blocked.sending, Duration::zero());
    } else {
      EXPECT_EQ(blocked.sending, Duration::zero());
      EXPECT_GT(blocked.decoding, Duration::zero());
    }
  }
}

TEST(LagTest, ASlowDeviceIsGivenWorkBeforeTheLastTokenIsKnown) {
  ServerProcess server(kRoomy);
  Gate gate(std::chrono::milliseconds(200));
  WorkerSetup setup = SmallSetup(server);
  setup.scheduler.lag = 2;
  setup.wrap = Gated(gate);
  TestWorker worker(setup);
  worker.scheduler().Add(LongAnswer(0.8f));
  // From then on the slots of the next tokens are held.
  while (worker.stats().launches < 5) ASSERT_TRUE(worker.scheduler().RunOnce().ok());
  const uint64_t before = worker.stats().unknown_rows;
  gate.Close();
  while (worker.stats().unknown_rows == before && !worker.scheduler().idle()) {
    ASSERT_TRUE(worker.scheduler().RunOnce().ok());
  }
  gate.Open();
  EXPECT_GT(worker.stats().unknown_rows, before);
  EXPECT_TRUE(worker.Verify(RunToEnd(worker)).identical());
}

// How often the text so far proposes the token that comes next.
int RightProposals(const Request& request, const std::vector<TokenId>& answer) {
  std::vector<TokenId> text = request.prompt;
  int right = 0;
  for (const TokenId token : answer) {
    const std::vector<TokenId> proposed = LookUpDrafts(text, 1);
    right += !proposed.empty() && proposed[0] == token ? 1 : 0;
    text.push_back(token);
  }
  return right;
}

class DraftsTest : public testing::TestWithParam<uint32_t> {};

TEST_P(DraftsTest, AreAcceptedWhereTheTextRepeatsItself) {
  ServerProcess server(kRoomy);
  WorkerSetup setup = SmallSetup(server);
  setup.scheduler.drafts = 3;
  setup.scheduler.lag = GetParam();
  TestWorker worker(setup);
  worker.scheduler().Add(LongAnswer(0));
  const auto results = RunToEnd(worker);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_TRUE(worker.Verify(results).identical());
  const int right = RightProposals(results[0].request, results[0].outputs.at(0).tokens);
  ASSERT_GT(right, 100) << "the model chose another text";
  EXPECT_GT(worker.stats().accepted_drafts, 50u);
  EXPECT_LT(worker.stats().launches, 150u);
}

TEST_P(DraftsTest, DoNotChangeTheText) {
  std::vector<std::vector<TokenId>> texts[2];
  for (const uint32_t drafts : {0u, 3u}) {
    ServerProcess server(kRoomy);
    WorkerSetup setup = SmallSetup(server);
    setup.scheduler.drafts = drafts;
    setup.scheduler.lag = GetParam();
    setup.load.temperature = 0;
    TestWorker worker(setup);
    const auto samples = MakeSamples(worker.load());
    auto results = worker.Run(*samples, 10);
    std::sort(results.begin(), results.end(),
              [](const auto& a, const auto& b) { return a.request.id < b.request.id; });
    for (const RequestResult& result : results) {
      for (const Generated& output : result.outputs) {
        texts[drafts == 0 ? 0 : 1].push_back(output.tokens);
      }
    }
  }
  EXPECT_EQ(texts[0], texts[1]);
}

INSTANTIATE_TEST_SUITE_P(Lags, DraftsTest, testing::Values(0u, 2u));

}  // namespace
}  // namespace quire::runtime
