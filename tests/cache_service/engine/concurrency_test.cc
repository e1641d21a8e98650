// Many threads on one engine: every call is whole, and the checker finds nothing at the end.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "cache_service/base/clock.h"
#include "cache_service/engine/cache_engine.h"
#include "gtest/gtest.h"

namespace quire {
namespace {

constexpr int kRounds = 3000;

std::unique_ptr<CacheEngine> MakeEngine(const Clock& clock) {
  EngineOptions options;
  options.block_count = 64;
  options.block_tokens = 4;
  options.max_sequence_tokens = 128;
  auto engine = CacheEngine::Create(options, clock);
  EXPECT_TRUE(engine.ok()) << engine.status();
  return *std::move(engine);
}

// Begins, advances and finishes sequences that share prefixes with those of other threads.
void RunWorker(CacheEngine& engine, uint32_t number) {
  AttachParams attach;
  attach.worker = "w" + std::to_string(number);
  attach.model_fingerprint = "m";
  attach.lock_step = true;
  const auto attached = engine.Attach(attach);
  ASSERT_TRUE(attached.ok()) << attached.status();
  StepParams params;
  params.lease = attached->lease;
  params.epoch = engine.options().epoch;
  for (uint32_t round = 0; round < kRounds; ++round) {
    const std::vector<TokenId> tokens(10 + round % 13, round % 3);
    BeginOp begin;
    begin.sequence = round;
    begin.tokens = tokens;
    FinishOp finish;
    finish.sequence = round > 0 ? round - 1 : 0;
    std::vector<Operation> operations = {begin};
    if (round > 0) operations.emplace_back(finish);
    params.operations = operations;
    ++params.step;
    ASSERT_TRUE(engine.Step(params).ok());
    const auto length = static_cast<uint32_t>(tokens.size());
    const std::vector<Operation> commit = {CommitOp{round, length, length}};
    params.operations = commit;
    ++params.step;
    ASSERT_TRUE(engine.Step(params).ok());
  }
  EXPECT_TRUE(engine.Detach(attached->lease, params.epoch, params.step).ok());
}

void Watch(CacheEngine& engine, const std::atomic<bool>& stop) {
  const std::vector<TokenId> tokens(12, 1);
  PrefixSelector prefix;
  prefix.tokens = tokens;
  while (!stop) {
    engine.RunMaintenance();
    const BlockStateCounts blocks = engine.Stats().blocks;
    EXPECT_EQ(blocks.Sum(), 64u);
    EXPECT_TRUE(engine.PeekPrefix(prefix).ok());
    const auto pin = engine.PinPrefix(prefix, "watcher", std::chrono::seconds(1));
    if (pin.ok()) {
      EXPECT_TRUE(engine.UnpinPrefix(pin->pin_id).ok());
    }
    EXPECT_TRUE(engine.Audit(false).findings.empty());
  }
}

TEST(CacheEngineConcurrency, WorkersAndWatchersShareOneEngine) {
  const SystemClock clock;
  const auto engine = MakeEngine(clock);
  std::atomic<bool> stop = false;
  std::thread watcher([&] { Watch(*engine, stop); });
  std::vector<std::thread> workers;
  for (uint32_t i = 0; i < 4; ++i) {
    workers.emplace_back([&engine, i] { RunWorker(*engine, i); });
  }
  for (std::thread& worker : workers) worker.join();
  stop = true;
  watcher.join();
  EXPECT_TRUE(engine->Audit(false).findings.empty());
  const BlockStateCounts blocks = engine->Stats().blocks;
  EXPECT_EQ(blocks.free + blocks.idle, 64u);
}

}  // namespace
}  // namespace quire
