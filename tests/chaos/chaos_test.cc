// Three workers share a pool while workers and server are killed, stopped, ended and started again.
// No request may fail, every text must be that of a run without any sharing, and in the end the
// pool must be whole.
#include <gtest/gtest.h>

#include <chrono>
#include <iostream>
#include <random>
#include <thread>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "tests/chaos/fleet.h"
#include "tests/chaos/script.h"
#include "worker/model/linear.h"
#include "worker/model/transformer.h"
#include "worker/runtime/text_log.h"
#include "worker/runtime/verifier.h"

ABSL_FLAG(uint64_t, seed, 0, "Seed of the script. 0: a new one.");
ABSL_FLAG(double, seconds, 15, "How long faults are made.");
ABSL_FLAG(std::string, faults, "all", "all, workers or server.");

namespace quire::chaos {
namespace {

ScriptOptions ReadOptions() {
  ScriptOptions options;
  options.seed = absl::GetFlag(FLAGS_seed);
  if (options.seed == 0) options.seed = std::random_device()();
  options.duration =
      std::chrono::milliseconds(static_cast<int64_t>(absl::GetFlag(FLAGS_seconds) * 1000));
  options.worker_faults = absl::GetFlag(FLAGS_faults) != "server";
  options.server_faults = absl::GetFlag(FLAGS_faults) != "workers";
  return options;
}

void PrintReplay(const ScriptOptions& options) {
  std::cout << "replay: chaos_test --seed=" << options.seed
            << " --seconds=" << absl::GetFlag(FLAGS_seconds)
            << " --faults=" << absl::GetFlag(FLAGS_faults) << std::endl;
}

// Nothing of the workers is left but cached content; a flush gives that back too.
void ExpectWholePool(const std::string& address) {
  OperatorCalls calls(address);
  absl::StatusOr<v1::Pool> pool = calls.Pool();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  const auto settled = [&] {
    return pool.ok() && pool->workers() == 0 && pool->sequences() == 0 &&
           pool->blocks().quarantined() == 0 && pool->blocks().fenced() == 0;
  };
  while (!settled() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    pool = calls.Pool();
  }
  ASSERT_TRUE(pool.ok()) << pool.status();
  EXPECT_TRUE(settled()) << pool->DebugString();
  const auto findings = calls.Audit();
  ASSERT_TRUE(findings.ok()) << findings.status();
  EXPECT_EQ(*findings, "");
  EXPECT_EQ(pool->blocks().free() + pool->blocks().idle(), pool->block_count())
      << pool->DebugString();
  EXPECT_TRUE(calls.Flush().ok());
  pool = calls.Pool();
  ASSERT_TRUE(pool.ok()) << pool.status();
  EXPECT_EQ(pool->blocks().free(), pool->block_count()) << pool->DebugString();
  EXPECT_EQ(pool->claimed_blocks(), 0u);
}

absl::StatusOr<runtime::VerifyReport> VerifyTexts(
    const std::vector<runtime::RequestResult>& results) {
  model::ModelConfig config;
  config.layers = 2;
  model::SetMatrixThreads(1);
  model::SeededWeights weights(1);
  auto model = model::Transformer::Create(config, weights);
  if (!model.ok()) return model.status();
  runtime::Verifier verifier(**model, runtime::VerifyTolerance(config.kv_dtype));
  verifier.AllowMissingLogits();
  for (const runtime::RequestResult& result : results) {
    if (absl::Status status = verifier.Check(result); !status.ok()) return status;
  }
  return verifier.report();
}

TEST(Chaos, CostsNoRequestAndNoBlock) {
  const ScriptOptions options = ReadOptions();
  PrintReplay(options);
  Fleet fleet(3, options.seed);
  Script script(options, fleet);
  script.Run();
  script.Restore();
  for (const auto& [name, count] : script.done()) std::cout << count << " x " << name << "\n";
  for (size_t i = 0; i < fleet.workers().size(); ++i) {
    if (fleet.workers()[i].program.has_value()) fleet.EndWorker(i);
  }
  ExpectWholePool(fleet.server().address());
  const auto results = runtime::ReadTexts(fleet.texts());
  ASSERT_TRUE(results.ok()) << results.status();
  std::cout << results->size() << " requests finished" << std::endl;
  EXPECT_GT(results->size(), 20u);
  const auto report = VerifyTexts(*results);
  ASSERT_TRUE(report.ok()) << report.status();
  std::cout << report->Summary() << std::endl;
  EXPECT_TRUE(report->identical());
  if (HasFailure()) PrintReplay(options);
}

}  // namespace
}  // namespace quire::chaos

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  absl::ParseCommandLine(argc, argv);
  return RUN_ALL_TESTS();
}
