// Blocks: taking, holding and releasing; the eviction order, timers and content checks.
#include <benchmark/benchmark.h>

#include <random>

#include "absl/container/flat_hash_map.h"
#include "cache_service/engine/block_pool.h"
#include "cache_service/engine/content_checks.h"
#include "cache_service/engine/sequence_store.h"
#include "tests/bench/bench_tokens.h"

namespace quire::bench {
namespace {

constexpr uint32_t kBlocks = 65536;

struct Order {
  explicit Order(uint32_t count) : blocks(count), order(blocks.data(), &journal) {
    for (uint32_t i = 0; i < count; ++i) {
      blocks[i].last_use = 2 * uint64_t{i};
      blocks[i].priority = 35;
    }
  }

  Journal journal;
  std::vector<Block> blocks;
  EvictionOrder order;
};

// The oldest goes and comes back as the newest.
void BM_EvictionList(benchmark::State& state) {
  Order o(kBlocks);
  for (uint32_t i = 0; i < kBlocks; ++i) o.order.Insert(BlockId{i});
  uint64_t now = 4 * uint64_t{kBlocks};
  for (auto _ : state) {
    const BlockId block = o.order.First();
    o.order.Remove(block);
    o.blocks[Index(block)].last_use = ++now;
    o.order.Insert(block);
  }
}

BENCHMARK(BM_EvictionList);

// What became idle out of order waits in the heap beside the list.
void BM_EvictionHeap(benchmark::State& state) {
  Order o(kBlocks);
  std::mt19937 random(1);
  for (Block& block : o.blocks) block.last_use = random();
  for (uint32_t i = 0; i < kBlocks; ++i) o.order.Insert(BlockId{i});
  for (auto _ : state) {
    const BlockId block = o.order.First();
    o.order.Remove(block);
    o.blocks[Index(block)].last_use += random();
    o.order.Insert(block);
  }
}

BENCHMARK(BM_EvictionHeap);

void BM_EvictionBands(benchmark::State& state) {
  Order o(kBlocks);
  std::mt19937 random(1);
  for (Block& block : o.blocks) block.priority = static_cast<uint8_t>(random() % 101);
  for (uint32_t i = 0; i < kBlocks; ++i) o.order.Insert(BlockId{i});
  uint64_t now = 4 * uint64_t{kBlocks};
  for (auto _ : state) {
    const BlockId block = o.order.First();
    o.order.Remove(block);
    o.blocks[Index(block)].priority = static_cast<uint8_t>(random() % 101);
    o.blocks[Index(block)].last_use = ++now;
    o.order.Insert(block);
  }
}

BENCHMARK(BM_EvictionBands);

class NoListener final : public BlockingListener {
  void OnBlockingChanged(const Block& /*block*/, bool /*blocking*/) override {}

  void OnClosedChanged(const Block& /*block*/) override {}
};

// Blocks into a table and back to the free list.
void BM_TakeAndRelease(benchmark::State& state) {
  Journal journal;
  NoListener listener;
  BlockPool pool(kBlocks, 1, true, &journal, &listener);
  constexpr WorkerSlot kWorker = 1;
  pool.AddWorker(kWorker);
  std::vector<BlockId> table(static_cast<size_t>(state.range(0)));
  for (auto _ : state) {
    pool.TakeFreeRun(kWorker, table);
    for (const BlockId block : table) pool.DropTableRef(block, kWorker, 0);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

BENCHMARK(BM_TakeAndRelease)->Arg(1)->Arg(160)->Arg(2048);

void BM_ShareBlock(benchmark::State& state) {
  Journal journal;
  NoListener listener;
  BlockPool pool(kBlocks, 1, true, &journal, &listener);
  for (const WorkerSlot worker : {WorkerSlot{1}, WorkerSlot{2}}) pool.AddWorker(worker);
  const BlockId block = pool.TakeFree(1, false);
  pool.AddTableRef(block, 1);
  for (auto _ : state) {
    pool.AddTableRef(block, 2);
    pool.DropTableRef(block, 2, 0);
  }
}

BENCHMARK(BM_ShareBlock);

void BM_RetentionTimer(benchmark::State& state) {
  Journal journal;
  RetentionTimers timers(&journal);
  TimePoint now{};
  for (uint32_t i = 0; i < 1000; ++i) {
    timers.Set(BlockId{i}, std::chrono::milliseconds(1 + i));
    timers.Start(BlockId{i}, now);
  }
  for (auto _ : state) {
    now += std::chrono::milliseconds(1);
    for (BlockId due = timers.PopDue(now); due != kNoBlock; due = timers.PopDue(now)) {
      timers.Set(due, std::chrono::milliseconds(1000));
      timers.Start(due, now);
    }
  }
}

BENCHMARK(BM_RetentionTimer);

void BM_ContentChecks(benchmark::State& state) {
  ContentChecks checks(kBlocks);
  uint32_t next = 0;
  for (auto _ : state) {
    for (int i = 0; i < 64; ++i) checks.Add(BlockId{next++ % kBlocks});
    for (const ContentCheck& check : checks.Take(64)) checks.Finish(check);
  }
  state.SetItemsProcessed(state.iterations() * 64);
}

BENCHMARK(BM_ContentChecks);

// The map of handles of one worker.
void BM_FindSequence(benchmark::State& state) {
  SequenceStore store;
  absl::flat_hash_map<SequenceHandle, SequenceStore::Owned> sequences;
  const auto count = static_cast<uint64_t>(state.range(0));
  for (uint64_t i = 0; i < count; ++i) sequences.emplace(i, store.New());
  uint64_t next = 0;
  for (auto _ : state) benchmark::DoNotOptimize(sequences.find(next++ % count)->second.get());
}

BENCHMARK(BM_FindSequence)->Arg(256)->Arg(1024)->Arg(4096);

}  // namespace
}  // namespace quire::bench
