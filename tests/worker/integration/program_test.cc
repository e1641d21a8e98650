// quire-worker as a user starts it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/operator_calls.h"
#include "tests/support/server_process.h"
#include "tests/support/temp_folder.h"

namespace quire {
namespace {

using testing::HasSubstr;
using testing::Not;

ProgramResult Worker(std::vector<std::string> flags) {
  flags.insert(flags.begin(), QUIRE_WORKER);
  return RunProgram(flags);
}

TEST(ProgramTest, HelpNamesTheWorkloads) {
  const ProgramResult help = Worker({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.output, HasSubstr("chat, samples, beam"));
  EXPECT_THAT(help.output, HasSubstr("--verify"));
}

TEST(ProgramTest, WrongFlagsAreNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"--workload=dance", "--workload"},
      {"--dtype=int4", "--dtype"},
      {"--backend=abacus", "--backend=abacus"},
      {"--threads=0", "--threads"},
      {"--mode=carrier", "--mode"},
      {"--head_dim=60", "head_dim 60"},
      {"--admission=none", "--admission"},
      {"--workload=trace", "--trace"},
      {"--users=0", "--users"},
      {"--rank_timeout=0", "--rank_timeout"},
      {"--max_sequences=0", "max_sequences 0"},
      {"--layers=100000000", "layers 100000000: not from 1 to 1024"},
      {"--layers=0", "layers 0"},
      {"--hidden=65537", "hidden 65537"},
      {"--q_heads=4097", "q_heads 4097"},
      {"--kv_heads=-1", "kv_heads -1"},
      {"--ffn=1048577", "ffn 1048577"},
      {"--vocabulary=4194305", "vocabulary 4194305"},
      {"--rank=1", "--rank: 1 is not below --ranks, 1"},
      {"--rank_fd=3", "--rank: set by quire-worker"},
      {"--reduce_fd=3", "--rank: set by quire-worker"},
      {"--batch_tokens=0", "batch_tokens 0"},
      {"--temperature=-1", "--temperature"},
      {"--temperature=nan", "--temperature"},
      {"--name=", "--name"},
      {"--server=abc", "--server: abc: neither"},
      {"--server=unix:", "--server: unix:: neither"},
      {"--server=host:", "--server: host:: neither"},
      {"--server=host:65536", "--server: host:65536: neither"},
      {"--server=/run/quire.sock", "--server: /run/quire.sock: neither"},
      {"extra", "extra"},
      {"--no_such_flag=1", "--no_such_flag"},
      {"--users=many", "--users: not a whole number: many"},
      {"--users=4294967296", "--users: 4294967296 is not from 0 to 4294967295"},
      {"--users=-1", "--users: -1 is not from 0 to"},
      {"--layers=2147483648", "--layers: 2147483648 is not from -2147483648 to 2147483647"},
      {"--verify=maybe", "--verify"},
      {"--json", "--json"},
      {"--users=1000001", "--users"},
      {"--lag=1025", "lag 1025"},
      {"--lease_seconds=1e12", "--lease_seconds"},
      {"--seconds=inf", "--seconds"},
      {"--server_timeout=-1", "--server_timeout"},
      {"--think_ms=nan", "--think_ms"}};
  for (const auto& [flag, message] : cases) {
    const ProgramResult result = Worker({flag});
    EXPECT_EQ(result.exit_code, 2) << flag;
    EXPECT_THAT(result.output, HasSubstr(message));
  }
}

// Each size is allowed alone.
TEST(ProgramTest, AModelLargerThanTheMachineIsRefused) {
  const ProgramResult result = Worker({"--layers=1024", "--hidden=65536", "--ffn=1048576"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.output, HasSubstr("layers 1024, hidden 65536"));
  EXPECT_THAT(result.output, HasSubstr("limit: the memory of this machine"));
}

TEST(ProgramTest, AnEmptyValueIsNotTheDefault) {
  for (const char* flag : {"--pool", "--token", "--name", "--server", "--json", "--texts",
                           "--trace", "--mode", "--workload", "--users"}) {
    const ProgramResult result = Worker({std::string(flag) + "="});
    EXPECT_EQ(result.exit_code, 2) << flag;
    EXPECT_THAT(result.output, HasSubstr(std::string(flag) + ": needs a value"));
  }
}

// Each names the option, and what does not use it.
TEST(ProgramTest, OptionsThatWouldDoNothingAreRefused) {
  const std::string trace = "--trace=/dev/null";
  const std::vector<std::vector<std::string>> cases = {
      {trace},
      {"--trace_without_model"},
      {"--trace_scale=2"},
      {"--width=2"},
      {"--turns=2", "--workload=samples"},
      {"--think_ms=0", "--workload=beam"},
      {"--temperature=0", "--workload=beam"},
      {"--lag=1", "--workload=beam"},
      {"--drafts=1", "--workload=beam"},
      {"--new_tokens=9", "--workload=trace", trace},
      {"--prompts_seed=9", "--workload=trace", trace},
      {"--verify", "--workload=trace", "--trace_without_model", trace},
      {"--layers=2", "--workload=trace", "--trace_without_model", trace},
      {"--seconds=3", "--workload=trace", "--trace_without_model", trace},
      {"--texts=/dev/null", "--workload=trace", "--trace_without_model", trace},
      {"--steps_in_flight=2", "--mode=unary"},
      {"--rank_timeout=3"}};
  for (const std::vector<std::string>& flags : cases) {
    const std::string name = flags[0].substr(0, flags[0].find('='));
    const ProgramResult result = Worker(flags);
    EXPECT_EQ(result.exit_code, 2) << flags[0];
    EXPECT_THAT(result.output, HasSubstr(name + ": "));
  }
}

TEST(ProgramTest, FilesAreTriedBeforeAnyWork) {
  const TempFolder folder;
  const std::string absent = folder.File("absent/file");
  const std::string server = "--server=unix:" + folder.File("nobody");
  const std::vector<std::vector<std::string>> cases = {
      {"--json=" + absent},
      {"--json=" + folder.path()},
      {"--texts=" + absent},
      {"--trace=" + absent, "--workload=trace"},
      {"--trace=" + absent, "--workload=trace", "--trace_without_model"},
      {"--trace=" + folder.path(), "--workload=trace"}};
  for (std::vector<std::string> flags : cases) {
    const std::string name = flags[0].substr(0, flags[0].find('='));
    flags.push_back(server);
    const ProgramResult result = Worker(flags);
    EXPECT_EQ(result.exit_code, 2) << flags[0];
    EXPECT_THAT(result.output, HasSubstr(name + ": cannot "));
    EXPECT_THAT(result.output, Not(HasSubstr("waiting for the server")));
  }
  EXPECT_TRUE(folder.Names().empty());
}

// A run that fails leaves no new file and what was in an old one.
TEST(ProgramTest, TryingAFileChangesNothing) {
  const TempFolder folder;
  std::ofstream(folder.File("old")) << "precious";
  for (const char* name : {"old", "new"}) {
    const ProgramResult result = Worker({"--server=unix:" + folder.File("nobody"),
                                         "--server_timeout=0.1", "--json=" + folder.File(name)});
    EXPECT_EQ(result.exit_code, 1) << result.output;
  }
  EXPECT_EQ(ReadFile(folder.File("old")), "precious");
  EXPECT_EQ(folder.Names(), std::vector<std::string>{"old"});
}

// Before it connects to anything. With kernels and a device, the next wrong flag is named.
TEST(ProgramTest, CudaIsRefusedWithAReasonWhereItCannotRun) {
  const ProgramResult result = Worker({"--backend=cuda", "--users=0"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(
      result.output,
      testing::AnyOf(HasSubstr("--backend=cuda --threads=1: name: this build has no CUDA"),
                     HasSubstr("--backend=cuda --threads=1: device: "), HasSubstr("--users")));
}

TEST(ProgramTest, ChatEndsWithAVerifiedSummary) {
  ServerProcess server({"--device_memory_bytes=32MiB", "--max_sequence_tokens=1024"});
  const TempFolder folder;
  const std::string name = folder.File("json");
  const ProgramResult result = Worker({"--server=" + server.address(), "--workload=chat",
                                       "--requests=40", "--verify", "--json=" + name});
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("verification: identical"));
  EXPECT_THAT(result.output, HasSubstr("prefix hit rate"));
  const auto json = nlohmann::json::parse(std::ifstream(name), nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["requests"], 40);
  EXPECT_EQ(json["verification"], "identical");
  EXPECT_GT(json["prefix_hit_rate"].get<double>(), 0.5);
}

TEST(ProgramTest, BlocksAreGivenBackBeforeVerification) {
  for (const char* ranks : {"1", "2"}) {
    ServerProcess server({"--device_memory_bytes=32MiB", "--max_sequence_tokens=1024",
                          std::string("--ranks=") + ranks});
    Program worker({QUIRE_WORKER, "--server=" + server.address(), "--think_ms=0", "--requests=60",
                    "--verify", std::string("--ranks=") + ranks});
    ASSERT_TRUE(worker.WaitFor("verifying")) << worker.output();
    worker.Signal(SIGSTOP);
    const auto workers = OperatorCalls(server.address()).Workers();
    ASSERT_TRUE(workers.ok()) << workers.status();
    EXPECT_EQ(workers->workers_size(), 0);
    const auto pool = OperatorCalls(server.address()).Pool();
    ASSERT_TRUE(pool.ok()) << pool.status();
    EXPECT_EQ(pool->blocks().fenced() + pool->blocks().quarantined(), 0u);
    worker.Signal(SIGCONT);
    EXPECT_EQ(worker.Wait().exit_code, 0);
  }
}

TEST(ProgramTest, ReplaysATraceWithAndWithoutTheModel) {
  const TempFolder folder;
  const std::string name = folder.File("trace");
  {
    std::ofstream trace(name);
    for (int i = 0; i < 6; ++i) {
      trace << R"({"timestamp": 0, "input_length": 1024, "output_length": 64, "hash_ids": [0, )"
            << (i % 2 + 1) << "]}\n";
    }
  }
  const std::string flag = "--trace=" + name;
  {
    ServerProcess server({"--memory=worker", "--block_count=20", "--block_tokens=512",
                          "--max_sequence_tokens=8192"});
    const ProgramResult replay = Worker({"--server=" + server.address(), "--workload=trace", flag,
                                         "--trace_without_model", "--progress=false"});
    EXPECT_EQ(replay.exit_code, 0) << replay.output;
    // The first finds nothing, the second one block, the others both.
    EXPECT_THAT(replay.output, HasSubstr("0.7500 (9 of 12 blocks)"));
  }
  ServerProcess server({"--device_memory_bytes=16MiB", "--max_sequence_tokens=512"});
  const ProgramResult run = Worker({"--server=" + server.address(), "--workload=trace", flag,
                                    "--trace_scale=16", "--verify", "--progress=false"});
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("6 finished, 0 failed"));
  EXPECT_THAT(run.output, HasSubstr("verification: identical"));
}

TEST(ProgramTest, PrefillAndDecodeInTwoProcessesGiveTheSameText) {
  ServerProcess server({"--device_memory_bytes=32MiB", "--max_sequence_tokens=1024"});
  const ProgramResult result = Worker({"--server=" + server.address(), "--workload=prefill-decode",
                                       "--requests=30", "--verify", "--progress=false"});
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("30 finished, 0 failed"));
  EXPECT_THAT(result.output, HasSubstr("verification: identical"));
  // The decoding process finds every whole block of its prompts.
  const std::string rate = "prefix hit rate:  ";
  const size_t at = result.output.find(rate);
  ASSERT_NE(at, std::string::npos);
  EXPECT_GT(std::stod(result.output.substr(at + rate.size())), 90);
}

TEST(ProgramTest, SaysWhyItCannotAttach) {
  ServerProcess server({"--device_memory_bytes=4MiB", "--max_sequence_tokens=128",
                        "--layout=dtype: DTYPE_FP16 kv_heads: 2 head_dim: 64 layer_windows: [0]"});
  const ProgramResult result = Worker({"--server=" + server.address(), "--requests=1"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("layout"));
}

}  // namespace
}  // namespace quire
