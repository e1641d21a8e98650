// Workloads of the engine alone, in process. Times are medians of thread CPU time.
#ifndef QUIRE_TESTS_BENCH_ENGINE_WORKLOADS_H_
#define QUIRE_TESTS_BENCH_ENGINE_WORKLOADS_H_

#include "tests/bench/report.h"

namespace quire::bench {

// `small` shrinks pools and repeats, to see that everything runs.
void BenchPrompts(Report& report, bool small);
void BenchDiverge(Report& report, bool small);
void BenchFamily(Report& report, bool small);
void BenchEviction(Report& report, bool small);
void BenchRetention(Report& report, bool small);
void BenchDecode(Report& report, bool small);
void BenchPoolSize(Report& report, bool small);
void BenchFootprint(Report& report, bool small);
void BenchTrace(Report& report, bool small);
void BenchSoak(Report& report, bool small);

}  // namespace quire::bench

#endif  // QUIRE_TESTS_BENCH_ENGINE_WORKLOADS_H_
