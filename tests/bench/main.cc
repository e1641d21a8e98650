// quire-bench: the speed of the engine, and of a server through its socket, against their goals.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cache_service/base/command_line.h"
#include "tests/bench/echo_server.h"
#include "tests/bench/engine_workloads.h"
#include "tests/bench/report.h"
#include "tests/bench/socket_workloads.h"

ABSL_FLAG(bool, all, false, "Run every workload");
ABSL_FLAG(std::string, workload, "", "Run one workload");
ABSL_FLAG(
    bool, smoke, false,
    "Small sizes, to see that everything runs; goals do not count. Every workload, with --all "
    "or without, unless --workload names one");
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

constexpr int kBadOption = 2;

int Refuse(const std::string& problem) {
  std::fprintf(stderr, "quire-bench: %s (see --help)\n", problem.c_str());
  return kBadOption;
}

bool IsWorkload(std::string_view name) {
  return std::ranges::any_of(kWorkloads, [name](const Workload& w) { return w.name == name; });
}

[[noreturn]] void PrintHelp() {
  std::printf(
      "quire-bench: measures the engine and the server against their goals.\n\n"
      "  quire-bench --all --json=out.json\n"
      "  quire-bench --workload=family\n\n"
      "Workloads:");
  for (const Workload& workload : kWorkloads) std::printf(" %s", workload.name);
  std::printf("\n\n");
  std::map<std::string, const absl::CommandLineFlag*> flags;
  for (const auto& [name, flag] : absl::GetAllFlags()) {
    if (absl::StrContains(flag->Filename(), "tests/bench/")) flags[std::string(name)] = flag;
  }
  for (const auto& [name, flag] : flags) {
    std::printf("  --%-12s %s. Default: \"%s\".\n", name.c_str(), flag->Help().c_str(),
                flag->DefaultValue().c_str());
  }
  std::printf("\nExit codes: 0 goals reached, 1 one missed, 2 bad option or file.\n");
  std::exit(0);
}

// INVALID_ARGUMENT unless the options go together and choose something.
absl::Status CheckOptions() {
  const std::string only = absl::GetFlag(FLAGS_workload);
  const bool all = absl::GetFlag(FLAGS_all);
  const bool smoke = absl::GetFlag(FLAGS_smoke);
  if (!all && only.empty() && !smoke) {
    return absl::InvalidArgumentError("nothing to run: give --all, --smoke or --workload=NAME");
  }
  if (all && !only.empty()) return absl::InvalidArgumentError("--workload: not with --all");
  if (!only.empty() && !IsWorkload(only)) {
    return absl::InvalidArgumentError(absl::StrCat("--workload=", only, ": no such workload"));
  }
  return quire::bench::CheckCases(only, smoke);
}

int Run() {
  const std::string only = absl::GetFlag(FLAGS_workload);
  const bool smoke = absl::GetFlag(FLAGS_smoke);
  quire::bench::Report report;
  report.PrintTo(stdout);
  for (const Workload& workload : kWorkloads) {
    if (only.empty() || only == workload.name) workload.run(report, smoke);
  }
  const std::string json = absl::GetFlag(FLAGS_json);
  if (!json.empty() && !report.WriteJson(json)) {
    std::fprintf(stderr, "cannot write %s\n", json.c_str());
    return kBadOption;
  }
  return smoke || report.AllReached() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (quire::HasWord(argc, argv, "help") || quire::HasWord(argc, argv, "h")) PrintHelp();
  const auto words = quire::SetFlags(argc, argv);
  if (!words.ok()) return Refuse(std::string(words.status().message()));
  if (!words->empty()) return Refuse("unexpected argument " + words->front());
  const std::string echo_socket = absl::GetFlag(FLAGS_echo_server);
  if (!echo_socket.empty()) return quire::bench::RunEchoServer(echo_socket);
  if (const absl::Status status = CheckOptions(); !status.ok())
    return Refuse(std::string(status.message()));
  return Run();
}
