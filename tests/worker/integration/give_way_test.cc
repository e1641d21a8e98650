// A request that cannot grow gives its blocks back, after answers and not after time.
#include <gtest/gtest.h>

#include "tests/worker/integration/worker_fixture.h"

namespace quire::runtime {
namespace {

// 32 blocks of 16 tokens, of which another worker holds 20: less than the request ends with.
class GiveWayTest : public testing::Test {
 protected:
  GiveWayTest() {
    client::Step step;
    step.Begin({.sequence = 1, .tokens = std::vector<TokenId>(320, 9)});
    Send(std::move(step));
    worker_.scheduler().Add(
        {.id = 1, .prompt = std::vector<TokenId>(100, 7), .new_tokens = 150, .sampling = {}});
  }

  static WorkerSetup Setup(const ServerProcess& server, const char* name) {
    WorkerSetup setup = SmallSetup(server);
    setup.name = name;
    setup.scheduler.retry_interval = std::chrono::milliseconds(1);
    return setup;
  }

  void Send(client::Step step) {
    ASSERT_TRUE(holder_.client().Submit(std::move(step)).ok());
    const auto applied = holder_.client().Wait();
    ASSERT_TRUE(applied.ok()) << applied.status();
    EXPECT_TRUE(applied->answer.failures.empty());
    EXPECT_TRUE(holder_.client().Complete(applied->answer.step).ok());
  }

  void LetGo() {
    client::Step step;
    step.Finish(1);
    Send(std::move(step));
    // Says that the step before is complete.
    Send(client::Step());
  }

  // So long until the condition holds.
  template <typename Condition>
  void RunUntil(Condition condition) {
    while (!condition()) {
      const absl::Status status = worker_.scheduler().RunOnce();
      ASSERT_TRUE(status.ok()) << status;
    }
  }

  void ExpectGoodEnd() {
    RunUntil([this] { return worker_.scheduler().idle(); });
    const auto results = worker_.scheduler().TakeResults();
    ASSERT_EQ(results.size(), 1u);
    EXPECT_EQ(results[0].outputs.at(0).tokens.size(), 150u);
    EXPECT_TRUE(worker_.Verify(results).identical());
  }

  const SchedulerStats& stats() const { return worker_.stats(); }

  ServerProcess server_{{"--device_memory_bytes=2MiB", "--max_sequence_tokens=320"}};
  TestWorker holder_{Setup(server_, "holder")};
  TestWorker worker_{Setup(server_, "worker")};
};

// Each refused answer has one failure, for nothing else runs. The first ones may be answers to
// steps sent before its own releases were complete, which do not count.
TEST_F(GiveWayTest, AfterFiftyRefusedAnswers) {
  RunUntil([this] { return stats().preemptions > 0; });
  EXPECT_GE(stats().shortages, 50u);
  EXPECT_LE(stats().shortages, 60u);
  LetGo();
  ExpectGoodEnd();
}

TEST_F(GiveWayTest, NotBefore) {
  RunUntil([this] { return stats().shortages >= 40; });
  EXPECT_EQ(stats().preemptions, 0u);
  LetGo();
  ExpectGoodEnd();
  EXPECT_EQ(stats().preemptions, 0u);
}

}  // namespace
}  // namespace quire::runtime
