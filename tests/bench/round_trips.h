// Round trips of Quire and of the echo, taken in turns.
#ifndef QUIRE_TESTS_BENCH_ROUND_TRIPS_H_
#define QUIRE_TESTS_BENCH_ROUND_TRIPS_H_

#include <optional>
#include <string>
#include <vector>

#include "tests/bench/measure.h"
#include "tests/bench/report.h"
#include "tests/bench/socket_servers.h"
#include "tests/bench/wire.h"

namespace quire::bench {

// One side's calls: microseconds of the clock, and of CPU.
struct CallTimes {
  std::vector<double> wall;
  std::vector<double> client_cpu;
  std::vector<double> server_cpu;
};

struct RoundTrips {
  CallTimes quire;
  CallTimes echo;
};

struct RatioGoals {
  std::optional<double> p50;
  std::optional<double> p99;
};

template <typename Call>
void TimeCall(const ChildProcess& server, Call call, CallTimes& times) {
  const double server_before = server.CpuSeconds();
  const double client_before = ThreadSeconds();
  const double before = WallSeconds();
  call();
  times.wall.push_back(1e6 * (WallSeconds() - before));
  times.client_cpu.push_back(1e6 * (ThreadSeconds() - client_before));
  times.server_cpu.push_back(1e6 * (server.CpuSeconds() - server_before));
}

// A call of the prepared step, then an echo of the same bytes each way.
inline void TimePair(const SocketServers& servers, WireWorker& worker, EchoCaller& echo,
                     RoundTrips& trips) {
  TimeCall(
      servers.quire(), [&] { worker.Call(); }, trips.quire);
  echo.Prepare(worker.sent_bytes(), worker.received_bytes());
  TimeCall(
      servers.echo(), [&] { echo.Call(); }, trips.echo);
}

// Times, their ratios at p50 and p99, and CPU times.
void AddRoundTrips(Report& report, const std::string& name, const RoundTrips& trips,
                   const RatioGoals& goals);

}  // namespace quire::bench

#endif  // QUIRE_TESTS_BENCH_ROUND_TRIPS_H_
