// What the engine's tables need per block when every block holds content.
#include <malloc.h>

#include <fstream>
#include <numeric>
#include <string>

#include "cache_service/base/clock.h"
#include "tests/bench/bench_worker.h"
#include "tests/bench/engine_workloads.h"

namespace quire::bench {
namespace {

// Memory of its own, without the program's code and libraries.
double AnonymousBytes() {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    double kilobytes = 0;
    if (word == "RssAnon:" && file >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

}  // namespace

void BenchFootprint(Report& report, bool small) {
  constexpr uint32_t kChain = 64;
  const uint32_t blocks = small ? 65'536 : 1'048'576;
  const SystemClock clock;
  EngineOptions options;
  options.block_count = blocks;
  options.memory = PoolMemoryKind::kWorker;
  malloc_trim(0);
  const double before = AnonymousBytes();
  const auto engine = CacheEngine::Create(options, clock);
  if (!engine.ok()) std::abort();
  {
    BenchWorker worker(**engine);
    std::vector<TokenId> tokens(kChain * options.block_tokens);
    for (uint32_t i = 0; i < blocks / kChain; ++i) {
      std::iota(tokens.begin(), tokens.end(), i * 1'000'003u);
      worker.Do(BenchWorker::Begin(i + 1, tokens));
      worker.Do(BenchWorker::Commit(i + 1, static_cast<uint32_t>(tokens.size())));
      worker.Do(BenchWorker::Finish(i + 1));
    }
  }
  malloc_trim(0);
  const double per_block = (AnonymousBytes() - before) / blocks;
  report.Add({"engine/metadata", per_block - 4.0 * options.block_tokens, "B/block",
              small ? std::optional<double>() : std::optional<double>(96)});
}

}  // namespace quire::bench
