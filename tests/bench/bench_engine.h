// Engines of the engine workloads.
#ifndef QUIRE_TESTS_BENCH_BENCH_ENGINE_H_
#define QUIRE_TESTS_BENCH_BENCH_ENGINE_H_

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>

#include "cache_service/base/clock.h"
#include "cache_service/engine/cache_engine.h"
#include "tests/bench/bench_tokens.h"

namespace quire::bench {

inline const SystemClock& BenchClock() {
  static const SystemClock clock;
  return clock;
}

inline std::unique_ptr<CacheEngine> MakeEngine(uint32_t blocks) {
  EngineOptions options;
  options.block_count = blocks;
  options.block_tokens = kBlockTokens;
  options.memory = PoolMemoryKind::kWorker;
  options.max_sequence_tokens = std::min(131072u, blocks * kBlockTokens);
  auto engine = CacheEngine::Create(options, BenchClock());
  if (!engine.ok()) std::abort();
  return *std::move(engine);
}

}  // namespace quire::bench

#endif  // QUIRE_TESTS_BENCH_BENCH_ENGINE_H_
