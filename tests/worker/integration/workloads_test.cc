// Workloads end to end: real server, real attention over its block tables, verification against a
// contiguous cache.
#include <gtest/gtest.h>

#include "tests/worker/integration/worker_fixture.h"

namespace quire::runtime {
namespace {

const std::vector<std::string> kRoomy = {"--device_memory_bytes=16MiB",
                                         "--max_sequence_tokens=512"};
// 40 blocks of 64 KiB: four conversations do not fit at once.
const std::vector<std::string> kTight = {"--device_memory_bytes=2560KiB",
                                         "--max_sequence_tokens=320"};
// As many blocks of 16-bit elements.
const std::vector<std::string> kTight16 = {"--device_memory_bytes=1280KiB",
                                           "--max_sequence_tokens=320"};

double HitRate(const SchedulerStats& stats) {
  return static_cast<double>(stats.reused_tokens) / static_cast<double>(stats.prompt_tokens);
}

TEST(WorkloadsTest, ChatReusesPromptsAndAnswers) {
  ServerProcess server(kRoomy);
  TestWorker worker(SmallSetup(server));
  const auto chat = MakeChat(worker.load());
  const auto results = worker.Run(*chat, 40);
  EXPECT_EQ(results.size(), 40u);
  const VerifyReport report = worker.Verify(results);
  EXPECT_TRUE(report.identical()) << report.Summary();
  EXPECT_GT(HitRate(worker.stats()), 0.5);
  EXPECT_EQ(worker.stats().preemptions, 0u);
  EXPECT_EQ(worker.client().tables().size(), 0u);
}

class LookAheadTest : public testing::TestWithParam<uint32_t> {};

TEST_P(LookAheadTest, DecodingNeverWaitsForTheServer) {
  ServerProcess server(kRoomy);
  WorkerSetup setup = SmallSetup(server);
  setup.scheduler.lag = GetParam();
  TestWorker worker(setup);
  std::vector<RequestResult> results;
  Request request;
  request.prompt = std::vector<TokenId>(20, 3);
  request.new_tokens = 200;
  request.sampling = {0.8f, 5};
  worker.scheduler().Add(request);
  while (!worker.scheduler().idle()) ASSERT_TRUE(worker.scheduler().RunOnce().ok());
  // The first token's slot is asked for with the last chunk of the prompt and may come after it;
  // until then each launch that comes back finds it missing.
  EXPECT_LE(worker.stats().launch_waits, 2u + GetParam());
  EXPECT_EQ(worker.stats().shortages, 0u);
  // How many depends on how busy the machine is.
  EXPECT_EQ(worker.stats().unknown_rows > 0, GetParam() > 0);
  EXPECT_TRUE(worker.Verify(worker.scheduler().TakeResults()).identical());
}

INSTANTIATE_TEST_SUITE_P(Lags, LookAheadTest, testing::Values(0u, 1u, 2u));

struct Variant {
  const char* name;
  client::StepMode mode = client::StepMode::kStream;
  Admission admission = Admission::kBestEffort;
  uint32_t drafts = 0;
  uint32_t lag = 0;
  uint32_t window = 0;
  kernels::DType dtype = kernels::DType::kF32;
};

class VariantsTest : public testing::TestWithParam<Variant> {
 protected:
  static WorkerSetup Setup(const ServerProcess& server) {
    const Variant& variant = GetParam();
    WorkerSetup setup = SmallSetup(server);
    setup.mode = variant.mode;
    setup.scheduler.admission = variant.admission;
    setup.scheduler.drafts = variant.drafts;
    setup.scheduler.lag = variant.lag;
    setup.model.kv_dtype = variant.dtype;
    if (variant.window > 0) {
      setup.model.layers = 6;
      setup.model.layer_windows = model::FiveToOneWindows(6, variant.window);
    }
    return setup;
  }
};

// A pool in which the requests do not fit at once: evictions, shortages and, with best effort,
// preemptions, and still the same text.
TEST_P(VariantsTest, AllSearchesAreIdenticalUnderPressure) {
  ServerProcess server(GetParam().dtype == kernels::DType::kF32 ? kTight : kTight16);
  TestWorker worker(Setup(server));
  for (const auto make : {MakeChat, MakeSamples, MakeBeam}) {
    const auto workload = make(worker.load());
    const auto results = worker.Run(*workload, 12);
    EXPECT_EQ(results.size(), 12u);
    const VerifyReport report = worker.Verify(results);
    EXPECT_TRUE(report.identical()) << report.Summary();
  }
  EXPECT_GT(worker.stats().forks, 0u);
  EXPECT_GT(worker.stats().copy_orders, 0u);
  EXPECT_GT(worker.stats().evicted_blocks, 0u);
  EXPECT_GT(worker.stats().shortages, 0u);
  if (GetParam().admission == Admission::kGuaranteed) {
    EXPECT_EQ(worker.stats().preemptions, 0u);
  }
  if (GetParam().drafts > 0) {
    EXPECT_GT(worker.stats().accepted_drafts, 0u);
  }
  EXPECT_EQ(worker.stats().unknown_rows > 0, GetParam().lag > 0);
}

INSTANTIATE_TEST_SUITE_P(
    Workers, VariantsTest,
    testing::Values(Variant{.name = "Stream"},
                    Variant{.name = "Unary", .mode = client::StepMode::kUnary},
                    Variant{.name = "LockStep", .mode = client::StepMode::kLockStep},
                    Variant{.name = "Guaranteed", .admission = Admission::kGuaranteed},
                    Variant{.name = "Drafts", .drafts = 3}, Variant{.name = "Lag", .lag = 1},
                    Variant{.name = "LongLag", .lag = 3},
                    Variant{.name = "LagGuaranteed", .admission = Admission::kGuaranteed, .lag = 2},
                    Variant{.name = "LagAndDrafts", .drafts = 3, .lag = 2},
                    Variant{.name = "Bf16", .dtype = kernels::DType::kBF16},
                    Variant{.name = "WindowsFp16", .window = 24, .dtype = kernels::DType::kF16}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(WorkloadsTest, DraftsDoNotChangeTheText) {
  std::vector<std::vector<TokenId>> texts[2];
  for (const uint32_t drafts : {0u, 3u}) {
    ServerProcess server(kRoomy);
    WorkerSetup setup = SmallSetup(server);
    setup.scheduler.drafts = drafts;
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
    if (drafts > 0) {
      EXPECT_GT(worker.stats().accepted_drafts, 0u);
    }
  }
  EXPECT_EQ(texts[0], texts[1]);
}

TEST(WorkloadsTest, RequestsThatCannotBeServedFailAloneWithAReason) {
  ServerProcess server(kTight);
  TestWorker worker(SmallSetup(server));
  Request too_long;
  too_long.prompt = std::vector<TokenId>(310, 1);
  too_long.new_tokens = 20;
  Request outside;
  outside.prompt = {};
  worker.scheduler().Add(too_long);
  worker.scheduler().Add(outside);
  Request good;
  good.prompt = {1, 2, 3};
  worker.scheduler().Add(good);
  while (!worker.scheduler().idle()) ASSERT_TRUE(worker.scheduler().RunOnce().ok());
  const auto results = worker.scheduler().TakeResults();
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[0].status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(results[1].status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(results[2].status.ok());
}

}  // namespace
}  // namespace quire::runtime
