// Workloads end to end: real server, real attention over its block tables, verification against a
// contiguous cache.
#include <gtest/gtest.h>

#include "tests/worker/integration/worker_fixture.h"

namespace quire::runtime {
namespace {

const std::vector<std::string> kRoomy = {"--device_memory_bytes=16MiB",
                                         "--max_sequence_tokens=512"};

std::vector<std::string> Tight(const char* bytes) {
  return {std::string("--device_memory_bytes=") + bytes, "--max_sequence_tokens=320"};
}

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

struct Variant {
  const char* name;
  client::StepMode mode = client::StepMode::kStream;
  Admission admission = Admission::kBestEffort;
  uint32_t drafts = 0;
  uint32_t lag = 0;
  uint32_t window = 0;
  kernels::DType dtype = kernels::DType::kF32;
  // 28 blocks of 64 KiB. Four requests begin in one step; with four samples each of at least 61
  // tokens, 3 whole blocks of them shared, they need 35.
  const char* memory = "1792KiB";
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

// A pool in which the requests do not fit at once, whatever the timing: evictions, shortages and,
// with best effort, preemptions, and still the same text.
TEST_P(VariantsTest, AllSearchesAreIdenticalUnderPressure) {
  ServerProcess server(Tight(GetParam().memory));
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
  EXPECT_EQ(worker.stats().preemptions > 0, GetParam().admission == Admission::kBestEffort);
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
                    Variant{.name = "Bf16", .dtype = kernels::DType::kBF16, .memory = "896KiB"},
                    Variant{.name = "WindowsFp16",
                            .window = 24,
                            .dtype = kernels::DType::kF16,
                            .memory = "1280KiB"}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(WorkloadsTest, RequestsThatCannotBeServedFailAloneWithAReason) {
  ServerProcess server(Tight("1792KiB"));
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
