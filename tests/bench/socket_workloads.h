// Workloads through a socket, each beside the bare gRPC echo of the same message sizes.
#ifndef QUIRE_TESTS_BENCH_SOCKET_WORKLOADS_H_
#define QUIRE_TESTS_BENCH_SOCKET_WORKLOADS_H_

#include <string_view>

#include "absl/status/status.h"
#include "tests/bench/report.h"

namespace quire::bench {

// INVALID_ARGUMENT if --cases chooses nothing of that workload; empty: of all.
absl::Status CheckCases(std::string_view workload, bool small);

// `small` shrinks sizes and repeats, to see that everything runs.
void BenchSocketDecode(Report& report, bool small);
void BenchSocketBegin(Report& report, bool small);
void BenchWorkers(Report& report, bool small);
void BenchLookAhead(Report& report, bool small);
void BenchWorkerProgram(Report& report, bool small);

}  // namespace quire::bench

#endif  // QUIRE_TESTS_BENCH_SOCKET_WORKLOADS_H_
