// Runs one core operation of the engine, for an instruction counter to look at: everything is set
// up first, the operation then runs inside MeasuredOperation.
#include <cstdio>
#include <map>
#include <numeric>
#include <string>

#include "cache_service/base/clock.h"
#include "tests/bench/bench_worker.h"

// callgrind collects while this runs.
extern "C" __attribute__((noinline, noclone, used)) void MeasuredOperation(
    quire::bench::BenchWorker& worker, std::span<const quire::Operation> operations) {
  worker.Step(operations);
}

namespace quire::bench {
namespace {

std::vector<TokenId> Tokens(uint32_t salt, uint32_t count) {
  std::vector<TokenId> tokens(count);
  std::iota(tokens.begin(), tokens.end(), salt * 1'000'003u);
  return tokens;
}

void Cache(BenchWorker& worker, SequenceHandle handle, const std::vector<TokenId>& tokens) {
  const auto length = static_cast<uint32_t>(tokens.size());
  worker.Do(BenchWorker::Begin(handle, tokens));
  worker.Do(BenchWorker::Commit(handle, length));
  worker.Do(BenchWorker::Finish(handle));
  worker.Settle();
}

void Advance256(BenchWorker& worker) {
  std::vector<SequenceHandle> handles;
  std::vector<uint32_t> lengths;
  for (uint32_t i = 0; i < 256; ++i) {
    worker.Do(BenchWorker::Begin(i + 1, Tokens(i + 1, 100 + i % 16)));
    handles.push_back(i + 1);
    lengths.push_back(100 + i % 16);
  }
  const std::vector<TokenId> tokens(256, 7);
  for (int step = 0; step < 16; ++step) {
    AdvanceOp advance;
    advance.sequences = handles;
    advance.start_lengths = lengths;
    advance.tokens = tokens;
    advance.ahead = 8;
    const std::vector<Operation> operations = {advance};
    if (step == 15) MeasuredOperation(worker, operations);
    if (step < 15) worker.Step(operations);
    for (uint32_t& length : lengths) ++length;
  }
}

void BeginCached32k(BenchWorker& worker) {
  const std::vector<TokenId> tokens = Tokens(1, 32768);
  Cache(worker, 1, tokens);
  const std::vector<Operation> begin = {BenchWorker::Begin(2, tokens)};
  MeasuredOperation(worker, begin);
}

void BeginCold8k(BenchWorker& worker) {
  const std::vector<TokenId> tokens = Tokens(1, 8192);
  const std::vector<Operation> begin = {BenchWorker::Begin(1, tokens)};
  MeasuredOperation(worker, begin);
}

// 64 blocks where every block of the pool holds idle content.
void Evict64(BenchWorker& worker) {
  for (uint32_t i = 0; i < 450; ++i) Cache(worker, i + 1, Tokens(i + 1, 160));
  const std::vector<TokenId> tokens = Tokens(1000, 64 * 16);
  const std::vector<Operation> begin = {BenchWorker::Begin(1000, tokens)};
  MeasuredOperation(worker, begin);
}

void Fork32kIntoFour(BenchWorker& worker) {
  const std::vector<TokenId> tokens = Tokens(1, 32768);
  worker.Do(BenchWorker::Begin(1, tokens));
  worker.Do(BenchWorker::Commit(1, 32768));
  worker.Settle();
  const std::vector<SequenceHandle> children = {2, 3, 4, 5};
  const std::vector<Operation> fork = {ForkOp{1, 32768, children}};
  MeasuredOperation(worker, fork);
}

int Run(const std::string& name) {
  static const std::map<std::string, void (*)(BenchWorker&)> operations = {
      {"advance_256", Advance256},     {"begin_cached_32k", BeginCached32k},
      {"begin_cold_8k", BeginCold8k},  {"evict_64", Evict64},
      {"fork_32k_4", Fork32kIntoFour},
  };
  const auto found = operations.find(name);
  if (found == operations.end()) {
    std::fprintf(stderr, "core_operations NAME, one of:\n");
    for (const auto& [known, run] : operations) std::fprintf(stderr, "  %s\n", known.c_str());
    return 2;
  }
  const SystemClock clock;
  EngineOptions options;
  options.block_count = 4096;
  options.memory = PoolMemoryKind::kWorker;
  options.max_sequence_tokens = 65536;
  const auto engine = CacheEngine::Create(options, clock);
  if (!engine.ok()) return 2;
  BenchWorker worker(**engine);
  found->second(worker);
  return 0;
}

}  // namespace
}  // namespace quire::bench

int main(int argc, char** argv) { return quire::bench::Run(argc == 2 ? argv[1] : ""); }
