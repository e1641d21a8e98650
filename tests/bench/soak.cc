// A hundred million operations, and what they leave on the heap.
#include <malloc.h>

#include "tests/bench/bench_engine.h"
#include "tests/bench/bench_worker.h"
#include "tests/bench/engine_workloads.h"
#include "tests/bench/measure.h"

namespace quire::bench {
namespace {

// Many sequences begin together, decode and finish; returns the number of operations.
uint64_t SoakRound(BenchWorker& worker, SequenceHandle first) {
  constexpr uint32_t kSequences = 256;
  constexpr uint32_t kSteps = 380;
  std::vector<SequenceHandle> handles(kSequences);
  std::vector<uint32_t> lengths(kSequences, 100);
  const std::vector<TokenId> next(kSequences, 7);
  std::iota(handles.begin(), handles.end(), first);
  for (const SequenceHandle handle : handles) {
    const std::vector<TokenId> tokens = Tokens(static_cast<uint32_t>(handle % 99'991), 100);
    worker.Do(BenchWorker::Begin(handle, tokens));
  }
  for (uint32_t step = 0; step < kSteps; ++step) {
    worker.Do(BenchWorker::Advance(handles, lengths, next));
    for (uint32_t& length : lengths) ++length;
  }
  for (const SequenceHandle handle : handles) worker.Do(BenchWorker::Finish(handle));
  return uint64_t{kSequences} * (kSteps + 2);
}

}  // namespace

// The heap after a quarter of the operations and at the end.
void BenchSoak(Report& report, bool small) {
  const auto engine = MakeEngine(16384);
  BenchWorker worker(*engine);
  const uint64_t operations = small ? 400'000 : 100'000'000;
  uint64_t done = 0;
  size_t settled = 0;
  const double time = Microseconds([&] {
    for (SequenceHandle first = 1; done < operations; first += 256) {
      done += SoakRound(worker, first);
      if (settled == 0 && done >= operations / 4) settled = mallinfo2().uordblks;
    }
  });
  const auto grown = static_cast<double>(mallinfo2().uordblks) - static_cast<double>(settled);
  report.Add({"engine/soak/operations", static_cast<double>(done) / 1e6, "million", {}});
  report.Add({"engine/soak/operation", time * 1e3 / static_cast<double>(done), "ns", {}});
  report.Add({"engine/soak/heap_growth", grown / 1024, "KiB", 64});
}

}  // namespace quire::bench
