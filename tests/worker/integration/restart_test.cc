// quire-worker while its server goes and comes back: real processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "tests/support/operator_calls.h"
#include "tests/support/server_process.h"

namespace quire {
namespace {

using testing::HasSubstr;

const std::vector<std::string> kRoomy = {"--device_memory_bytes=16MiB",
                                         "--max_sequence_tokens=512"};

// One that ends by its deadline has waited for somebody in vain.
const std::vector<std::string> kPatient = {"--device_memory_bytes=16MiB",
                                           "--max_sequence_tokens=512", "--drain_deadline=600s"};

template <typename Condition>
bool Eventually(Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

// Long before its deadline.
bool EndsInTime(ServerProcess& server) {
  return Eventually([&] { return !server.IsAlive(); });
}

std::vector<std::string> Worker(const std::string& server, std::vector<std::string> flags) {
  std::vector<std::string> arguments = {QUIRE_WORKER, "--server=" + server, "--layers=2",
                                        "--verify"};
  const bool talks = std::ranges::none_of(flags, [](const std::string& flag) {
    return flag == "--workload=beam" || flag == "--workload=samples";
  });
  if (talks) arguments.push_back("--think_ms=100");
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  return arguments;
}

enum class End { kSigterm, kKill };

struct Restart {
  const char* name;
  End end;
  const char* workload;
  const char* more = "--mode=stream";
};

class RestartTest : public testing::TestWithParam<Restart> {};

// Requests never stop coming while the server ends and another one takes its socket.
TEST_P(RestartTest, UnderLoadCostsNoRequest) {
  ServerProcess server(kPatient);
  Program worker(Worker(server.address(), {std::string("--workload=") + GetParam().workload,
                                           "--seconds=600", "--users=4", GetParam().more}));
  for (int restart = 0; restart < 2; ++restart) {
    ASSERT_TRUE(worker.WaitFor(restart == 0 ? "requests (" : "again after")) << worker.output();
    if (GetParam().end == End::kSigterm) {
      SignalProcess(server.pid(), SIGTERM);
      ASSERT_TRUE(EndsInTime(server)) << worker.output();
      EXPECT_EQ(server.Terminate().exit_code, 0);
    } else {
      server.Kill();
    }
    server.Start();
  }
  worker.Signal(SIGINT);
  const ProgramResult result = worker.Wait();
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr(" finished, 0 failed"));
  EXPECT_THAT(result.output, HasSubstr("verification: identical"));
  EXPECT_THAT(result.output, HasSubstr("unfinished requests are computed again"));
}

INSTANTIATE_TEST_SUITE_P(
    Workers, RestartTest,
    testing::Values(Restart{"SigtermChat", End::kSigterm, "chat"},
                    Restart{"SigtermBeam", End::kSigterm, "beam", "--users=1"},
                    Restart{"SigtermUnary", End::kSigterm, "chat", "--mode=unary"},
                    Restart{"SigtermPrefillDecode", End::kSigterm, "prefill-decode"},
                    Restart{"KillSamples", End::kKill, "samples", "--users=1"},
                    Restart{"KillLockStep", End::kKill, "chat", "--mode=lock-step"},
                    Restart{"KillPrefillDecode", End::kKill, "prefill-decode"}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(PrefillDecodeTest, ADeadPrefillProcessCostsNoRequest) {
  ServerProcess server(kRoomy);
  Program worker(Worker(server.address(), {"--workload=prefill-decode", "--requests=150"}));
  ASSERT_TRUE(worker.WaitFor("requests (")) << worker.output();
  SignalProcess(worker.Child(), SIGKILL);
  const ProgramResult result = worker.Wait();
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("150 finished, 0 failed"));
  EXPECT_THAT(result.output, HasSubstr("the prefill process failed"));
  EXPECT_THAT(result.output, HasSubstr("verification: identical"));
}

uint64_t SequencesOf(const ServerProcess& server, const std::string& name) {
  const auto workers = OperatorCalls(server.address()).Workers();
  if (!workers.ok()) return 0;
  for (const v1::Worker& worker : workers->workers()) {
    if (worker.name() == name) return worker.sequences();
  }
  return 0;
}

// The new server ends as well before the decoding process has attached to it, while the prefilling
// one keeps prompts there that nobody will begin.
TEST(PrefillDecodeTest, KeptPromptsDoNotHoldADrainingServer) {
  ServerProcess server(kPatient);
  Program worker(
      Worker(server.address(), {"--workload=prefill-decode", "--seconds=600", "--think_ms=0",
                                "--users=4", "--name=w", "--lease_seconds=300"}));
  ASSERT_TRUE(worker.WaitFor("requests (")) << worker.output();
  const int prefill = worker.Child();
  SignalProcess(prefill, SIGSTOP);
  // Every user waits for his prompt.
  ASSERT_TRUE(Eventually([&] { return SequencesOf(server, "w") == 0; }));
  worker.Signal(SIGSTOP);
  server.Kill();
  server.Start();
  SignalProcess(prefill, SIGCONT);
  ASSERT_TRUE(Eventually([&] { return SequencesOf(server, "w-prefill") > 0; }));
  SignalProcess(server.pid(), SIGTERM);
  worker.Signal(SIGCONT);
  EXPECT_TRUE(EndsInTime(server)) << worker.output();
  server.Start();
  ASSERT_TRUE(worker.WaitFor("again after")) << worker.output();
  worker.Signal(SIGINT);
  const ProgramResult result = worker.Wait();
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr(" finished, 0 failed"));
  EXPECT_THAT(result.output, HasSubstr("verification: identical"));
}

TEST(NoServerTest, SaysAtOnceForHowLongItWaits) {
  Program worker(Worker("unix:/tmp/quire-nobody-is-here", {"--server_timeout=600"}));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(
      worker.WaitFor("waiting for the server at unix:/tmp/quire-nobody-is-here, 0 s of at "
                     "most 600 s"))
      << worker.output();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(NoServerTest, GivesUpAfterTheTimeout) {
  const ProgramResult result =
      RunProgram(Worker("unix:/tmp/quire-nobody-is-here", {"--server_timeout=0.3"}));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("no answer from the server"));
}

TEST(NoServerTest, ASignalEndsTheWait) {
  Program worker(Worker("unix:/tmp/quire-nobody-is-here", {"--server_timeout=600"}));
  ASSERT_TRUE(worker.WaitFor("waiting for the server")) << worker.output();
  worker.Signal(SIGTERM);
  ASSERT_TRUE(worker.EndsWithin(std::chrono::seconds(120))) << worker.output();
  const ProgramResult result = worker.Wait();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("told to stop"));
}

// One that is there and says nothing, long after renewals were due.
TEST(NoServerTest, ASignalEndsTheWaitForASilentServer) {
  ServerProcess server(kRoomy);
  Program worker(Worker(server.address(), {"--seconds=600", "--server_timeout=600",
                                           "--lease_seconds=0.5", "--think_ms=0"}));
  ASSERT_TRUE(worker.WaitFor("requests (")) << worker.output();
  SignalProcess(server.pid(), SIGSTOP);
  worker.Signal(SIGTERM);
  ASSERT_TRUE(worker.EndsWithin(std::chrono::seconds(120))) << worker.output();
  const ProgramResult result = worker.Wait();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("told to stop"));
}

TEST(NoServerTest, ARunThatTheServerEndsHasASummary) {
  ServerProcess server(kRoomy);
  Program worker(Worker(server.address(), {"--seconds=600", "--server_timeout=0.5"}));
  ASSERT_TRUE(worker.WaitFor("requests (")) << worker.output();
  EXPECT_EQ(server.Terminate().exit_code, 0);
  const ProgramResult result = worker.Wait();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("ended early:"));
  EXPECT_THAT(result.output, HasSubstr("no answer from the server"));
  EXPECT_THAT(result.output, HasSubstr("verification: identical"));
}

TEST(DrainTest, AWorkerThatComesWhileTheServerDrainsWaitsForItsSuccessor) {
  ServerProcess server(kRoomy);
  // Stopped, it keeps its sequences and with them the server.
  Program holder(Worker(server.address(), {"--seconds=600", "--name=holder", "--think_ms=0"}));
  ASSERT_TRUE(holder.WaitFor("requests (")) << holder.output();
  holder.Signal(SIGSTOP);
  SignalProcess(server.pid(), SIGTERM);
  Program late(Worker(server.address(), {"--requests=10", "--name=late"}));
  EXPECT_TRUE(late.WaitFor("drains: what runs goes on")) << late.output();
  holder.Signal(SIGKILL);
  server.Terminate();
  server.Start();
  const ProgramResult result = late.Wait();
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("10 finished, 0 failed"));
}

}  // namespace
}  // namespace quire
