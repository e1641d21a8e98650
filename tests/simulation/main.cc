// quire-simulation: many seeds of a simulated server with its workers, and all that goes wrong.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "tests/simulation/faults.h"
#include "tests/simulation/runner.h"

ABSL_FLAG(uint64_t, seed, 1, "First seed");
ABSL_FLAG(uint64_t, seeds, 0, "Number of seeds; 0: as many as operations and time allow");
ABSL_FLAG(uint64_t, operations, 0,
          "Operations in all, shared out among the seeds if both are given");
ABSL_FLAG(uint64_t, seed_operations, quire::simulation::kOperationsPerSeed,
          "Operations of one seed");
ABSL_FLAG(double, minutes, 0, "Goes on with further seeds for so long");
ABSL_FLAG(double, hours, 0, "Goes on with further seeds for so long");
ABSL_FLAG(std::string, fault, "none", "Breaks one rule of the engine on purpose");
ABSL_FLAG(uint64_t, audit_every, 64,
          "Simulated milliseconds between two looks for broken invariants");
ABSL_FLAG(bool, trace, false, "Prints every event of a seed to standard error");

namespace quire::simulation {
namespace {

std::string Usage() {
  std::string text =
      "Simulates a server and several workers, with lost, repeated and late messages, breaks,\n"
      "pauses, kills and restarts, and checks every slot that a kernel reads. Exit status 1: a\n"
      "violation, with the line that repeats it.\n"
      "  quire-simulation --operations=10000000 --seeds=1000\n"
      "  quire-simulation --hours=8 --seed=1000000\n"
      "  quire-simulation --seed=17 --seeds=1 --trace\n"
      "Faults for --fault:";
  for (const NamedFault& named : kFaults) text.append(" ").append(named.name);
  return text;
}

RunOptions OptionsOfFlags() {
  RunOptions options;
  options.first_seed = absl::GetFlag(FLAGS_seed);
  options.seeds = absl::GetFlag(FLAGS_seeds);
  options.operations = absl::GetFlag(FLAGS_operations);
  options.seconds = absl::GetFlag(FLAGS_minutes) * 60 + absl::GetFlag(FLAGS_hours) * 3600;
  options.audit_every = absl::GetFlag(FLAGS_audit_every);
  options.trace = absl::GetFlag(FLAGS_trace);
  options.operations_per_seed = absl::GetFlag(FLAGS_seed_operations);
  if (options.operations > 0 && options.seeds > 0) {
    options.operations_per_seed = options.operations / options.seeds;
    options.operations = 0;
  }
  if (options.seeds == 0 && options.operations == 0 && options.seconds <= 0) options.seeds = 100;
  return options;
}

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void Report(const char* what, const RunOutcome& outcome, double seconds) {
  std::printf("%s: %llu seeds, %llu operations in %.1f s, %.0f operations per second\n", what,
              static_cast<unsigned long long>(outcome.seeds),
              static_cast<unsigned long long>(outcome.operations), seconds,
              static_cast<double>(outcome.operations) / (seconds > 0 ? seconds : 1));
  std::fflush(stdout);
}

int Run(const std::string& fault) {
  const RunOptions options = OptionsOfFlags();
  const auto start = std::chrono::steady_clock::now();
  double reported = 0;
  const RunOutcome outcome = RunSeeds(options, [&](const RunOutcome& so_far) {
    if (SecondsSince(start) < reported + 10) return;
    reported = SecondsSince(start);
    Report("so far", so_far, reported);
  });
  Report(outcome.violation.empty() ? "no violation" : "stopped", outcome, SecondsSince(start));
  if (outcome.violation.empty()) return 0;
  std::printf("VIOLATION in seed %llu %s\nrepeat it: quire-simulation --seed=%llu --seeds=1",
              static_cast<unsigned long long>(outcome.failed_seed), outcome.violation.c_str(),
              static_cast<unsigned long long>(outcome.failed_seed));
  std::printf(" --seed_operations=%llu%s%s\n",
              static_cast<unsigned long long>(options.operations_per_seed),
              fault == "none" ? "" : " --fault=", fault == "none" ? "" : fault.c_str());
  return 1;
}

}  // namespace
}  // namespace quire::simulation

int main(int argc, char** argv) {
  using namespace quire::simulation;  // NOLINT(google-build-using-namespace)
  absl::SetProgramUsageMessage(Usage());
  absl::ParseCommandLine(argc, argv);
  const std::string fault = absl::GetFlag(FLAGS_fault);
  if (!FaultOf(fault)) {
    std::fprintf(stderr, "no fault \"%s\" (see --help)\n", fault.c_str());
    return 2;
  }
  quire::injected_fault = *FaultOf(fault);
  return Run(fault);
}
