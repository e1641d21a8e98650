// Engines and tokens of the engine workloads.
#ifndef QUIRE_TESTS_BENCH_BENCH_ENGINE_H_
#define QUIRE_TESTS_BENCH_BENCH_ENGINE_H_

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "cache_service/base/clock.h"
#include "cache_service/engine/cache_engine.h"

namespace quire::bench {

inline const SystemClock& BenchClock() {
  static const SystemClock clock;
  return clock;
}

inline std::unique_ptr<CacheEngine> MakeEngine(uint32_t blocks) {
  EngineOptions options;
  options.block_count = blocks;
  options.block_tokens = 16;
  options.memory = PoolMemoryKind::kWorker;
  options.max_sequence_tokens = std::min(131072u, blocks * 16);
  auto engine = CacheEngine::Create(options, BenchClock());
  if (!engine.ok()) std::abort();
  return *std::move(engine);
}

// Tokens that only this (family, count) has.
inline std::vector<TokenId> Tokens(uint32_t family, uint32_t count) {
  std::vector<TokenId> tokens(count);
  std::iota(tokens.begin(), tokens.end(), family * 1'000'003u);
  return tokens;
}

}  // namespace quire::bench

#endif  // QUIRE_TESTS_BENCH_BENCH_ENGINE_H_
