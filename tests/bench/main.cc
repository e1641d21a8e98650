// quire-bench: the speed of the engine, and of a server through its socket, against their goals.
#include <cstdio>
#include <string>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/match.h"
#include "tests/bench/echo_server.h"
#include "tests/bench/engine_workloads.h"
#include "tests/bench/report.h"
#include "tests/bench/socket_workloads.h"

ABSL_FLAG(bool, all, false, "Run every workload");
ABSL_FLAG(
    std::string, workload, "",
    "Run one: prompts, diverge, family, eviction, retention, decode, start, footprint, trace, "
    "soak, socket_decode, socket_begin, workers, look_ahead, worker_program");
ABSL_FLAG(bool, smoke, false, "Small sizes, to see that everything runs; goals do not count");
ABSL_FLAG(std::string, json, "", "Also write the results to this file");
ABSL_FLAG(std::string, echo_server, "", "Only serve the echo on this Unix socket, until SIGTERM");

namespace {

struct Workload {
  const char* name;
  void (*run)(quire::bench::Report&, bool);
};

constexpr Workload kWorkloads[] = {
    {"prompts", quire::bench::BenchPrompts},
    {"diverge", quire::bench::BenchDiverge},
    {"family", quire::bench::BenchFamily},
    {"eviction", quire::bench::BenchEviction},
    {"retention", quire::bench::BenchRetention},
    {"decode", quire::bench::BenchDecode},
    {"start", quire::bench::BenchPoolSize},
    {"footprint", quire::bench::BenchFootprint},
    {"trace", quire::bench::BenchTrace},
    {"soak", quire::bench::BenchSoak},
    {"socket_decode", quire::bench::BenchSocketDecode},
    {"socket_begin", quire::bench::BenchSocketBegin},
    {"workers", quire::bench::BenchWorkers},
    {"look_ahead", quire::bench::BenchLookAhead},
    {"worker_program", quire::bench::BenchWorkerProgram},
};

}  // namespace

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "Measures the engine and the server against their goals.\n"
      "  quire-bench --all [--json out.json]\n"
      "  quire-bench --workload=family");
  absl::ParseCommandLine(argc, argv);
  const std::string echo_socket = absl::GetFlag(FLAGS_echo_server);
  if (!echo_socket.empty()) return quire::bench::RunEchoServer(echo_socket);
  const std::string only = absl::GetFlag(FLAGS_workload);
  const bool smoke = absl::GetFlag(FLAGS_smoke);
  if (!absl::GetFlag(FLAGS_all) && only.empty() && !smoke) {
    std::fprintf(stderr, "nothing to run: give --all, --smoke or --workload=NAME (see --help)\n");
    return 2;
  }
  quire::bench::Report report;
  report.PrintTo(stdout);
  bool found = false;
  for (const Workload& workload : kWorkloads) {
    if (!only.empty() && only != workload.name) continue;
    found = true;
    workload.run(report, smoke);
  }
  if (!found) {
    std::fprintf(stderr, "no workload \"%s\" (see --help)\n", only.c_str());
    return 2;
  }
  const std::string json = absl::GetFlag(FLAGS_json);
  if (!json.empty() && !report.WriteJson(json)) {
    std::fprintf(stderr, "cannot write %s\n", json.c_str());
    return 2;
  }
  return smoke || report.AllReached() ? 0 : 1;
}
