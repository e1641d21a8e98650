// A worker of several processes, each with a part of the heads and a region of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <sstream>
#include <thread>

#include "tests/support/operator_calls.h"
#include "tests/support/server_process.h"

namespace quire {
namespace {

using testing::HasSubstr;

std::vector<std::string> ServerFlags(int ranks) {
  return {"--device_memory_bytes=" + std::to_string(4 / ranks) + "MiB", "--max_sequence_tokens=320",
          "--stream_grace=300ms", "--ranks=" + std::to_string(ranks)};
}

std::vector<std::string> Worker(const ServerProcess& server, int ranks,
                                std::vector<std::string> flags) {
  std::vector<std::string> arguments = {QUIRE_WORKER, "--server=" + server.address(),
                                        "--ranks=" + std::to_string(ranks), "--kv_heads=4",
                                        "--layers=2"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  return arguments;
}

std::vector<std::string> Lines(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  return lines;
}

// What so many ranks generate, greedily, under pressure that evicts and preempts.
std::vector<std::string> Texts(int ranks, const std::vector<std::string>& more = {}) {
  ServerProcess server(ServerFlags(ranks));
  const std::string file = server.folder() + "/texts";
  std::vector<std::string> flags = {
      "--workload=samples", "--width=2",        "--temperature=0", "--requests=30",
      "--texts=" + file,    "--progress=false", "--verify"};
  flags.insert(flags.end(), more.begin(), more.end());
  const ProgramResult result = RunProgram(Worker(server, ranks, flags));
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("verification: identical"));
  return Lines(ReadFile(file));
}

TEST(RanksTest, GenerateTheTextOfOneProcess) {
  const std::vector<std::string> one = Texts(1);
  EXPECT_EQ(one.size(), 30u);
  EXPECT_EQ(Texts(2), one);
  EXPECT_EQ(Texts(4), one);
}

TEST(RanksTest, RunAheadOfTheirTokensWithTheSameText) {
  const std::vector<std::string> one = Texts(1);
  EXPECT_EQ(Texts(2, {"--lag=2"}), one);
}

TEST(RanksTest, SayWhichServerTheyNeed) {
  ServerProcess server(ServerFlags(1));
  const ProgramResult result = RunProgram(Worker(server, 2, {"--requests=1"}));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("2 ranks"));
  EXPECT_THAT(RunProgram(Worker(server, 3, {})).output, HasSubstr("--ranks: "));
}

// No request, no text and no block, although a rank failed for the reason.
void ExpectNothingLost(const ServerProcess& server, const ProgramResult& result,
                       const std::string& reason) {
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr(" 0 failed"));
  EXPECT_THAT(result.output, HasSubstr(reason));
  EXPECT_THAT(result.output, HasSubstr("verification: identical"));
  OperatorCalls calls(server.address());
  EXPECT_EQ(calls.Audit().value_or("no answer"), "");
  const auto pool = calls.Pool();
  EXPECT_EQ(pool->blocks().free() + pool->blocks().idle(), pool->block_count());
}

TEST(RanksTest, AKilledRankCostsNoRequest) {
  ServerProcess server(ServerFlags(2));
  Program worker(Worker(server, 2, {"--seconds=600", "--users=4", "--think_ms=100", "--verify"}));
  // The second time while its successor is being mapped, or soon after.
  for (const char* sign : {"requests (", "again after"}) {
    ASSERT_TRUE(worker.WaitFor(sign)) << worker.output();
    SignalProcess(worker.Child(), SIGKILL);
  }
  std::this_thread::sleep_for(std::chrono::seconds(1));
  worker.Signal(SIGTERM);
  ExpectNothingLost(server, worker.Wait(), "rank 1 is gone");
}

TEST(RanksTest, AStoppedRankIsReplaced) {
  ServerProcess server(ServerFlags(2));
  Program worker(Worker(
      server, 2, {"--seconds=600", "--users=4", "--think_ms=0", "--verify", "--rank_timeout=1"}));
  ASSERT_TRUE(worker.WaitFor("requests (")) << worker.output();
  SignalProcess(worker.Child(), SIGSTOP);
  ASSERT_TRUE(worker.WaitFor("again after")) << worker.output();
  worker.Signal(SIGTERM);
  ExpectNothingLost(server, worker.Wait(), "rank 1 does not answer");
}

// A worker of two ranks in the middle of its work, and the blocks that it may still write.
class RankLocksTest : public testing::Test {
 protected:
  RankLocksTest() : server_(ServerFlags(2)), calls_(server_.address()) {
    worker_.emplace(
        Worker(server_, 2, {"--seconds=600", "--think_ms=0", "--users=4", "--lease_seconds=1"}));
    EXPECT_TRUE(worker_->WaitFor("requests (")) << worker_->output();
    scheduler_ = worker_->pid();
    rank_ = worker_->Child();
  }

  ~RankLocksTest() override {
    SignalProcess(scheduler_, SIGCONT);
    SignalProcess(rank_, SIGKILL);
  }

  uint64_t Quarantined() { return calls_.Pool()->blocks().quarantined(); }

  bool Eventually(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return true;
  }

  // One process of the two is dead, the other one stopped.
  void ExpectQuarantineUntil(const std::function<void()>& end_of_the_other) {
    EXPECT_TRUE(Eventually([&] { return calls_.Pool()->workers() == 0; }));
    const uint64_t quarantined = Quarantined();
    EXPECT_GT(quarantined, 0u);
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    EXPECT_EQ(Quarantined(), quarantined) << "one region is still mapped";
    end_of_the_other();
    EXPECT_TRUE(Eventually([&] { return Quarantined() == 0; }));
    EXPECT_EQ(calls_.Audit().value_or("no answer"), "");
  }

  ServerProcess server_;
  OperatorCalls calls_;
  std::optional<Program> worker_;
  int scheduler_ = 0;
  int rank_ = 0;
};

TEST_F(RankLocksTest, TheSchedulersDeathIsNotEnough) {
  SignalProcess(rank_, SIGSTOP);
  worker_.reset();
  ExpectQuarantineUntil([&] { SignalProcess(rank_, SIGKILL); });
}

TEST_F(RankLocksTest, TheOtherRanksDeathIsNotEnough) {
  SignalProcess(scheduler_, SIGSTOP);
  SignalProcess(rank_, SIGKILL);
  ExpectQuarantineUntil([&] { worker_.reset(); });
}

}  // namespace
}  // namespace quire
