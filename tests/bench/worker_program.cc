// What the server costs quire-worker's loop for each token that it generates, by place.
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/bench/child_process.h"
#include "tests/bench/measure.h"
#include "tests/bench/socket_servers.h"
#include "tests/bench/socket_workloads.h"
#include "tests/support/temp_folder.h"

namespace quire::bench {
namespace {

// By place, run by run.
using Places = std::map<std::string, std::vector<double>>;

// Users who talk without a pause, so that begins and finishes come while others decode; other
// prompts in each run. The model is just large enough for a launch to take some milliseconds.
void RunOnce(const SocketServers& servers, const std::string& mode, int run, bool small,
             Places& places) {
  const TempFolder folder;
  const std::string json_file = folder.File("json");
  RunToEnd({QUIRE_BENCH_WORKER, absl::StrCat("--server=", servers.QuireAddress(false)),
            absl::StrCat("--mode=", mode), absl::StrCat("--name=", mode),
            absl::StrCat("--seed=", run + 1), absl::StrCat("--requests=", small ? 8 : 100),
            "--users=16", "--new_tokens=64", "--think_ms=0", "--layers=8", "--hidden=256",
            "--ffn=1024", "--threads=1", "--progress=false", absl::StrCat("--json=", json_file)});
  const auto json = nlohmann::json::parse(std::ifstream(json_file));
  for (const auto& [place, value] : json.at("blocked_us_per_token_by_place").items()) {
    places[place].push_back(value.get<double>());
  }
}

void AddPlaces(Report& report, const std::string& form, const Places& places, bool judged) {
  for (const auto& [place, values] : places) {
    std::optional<double> goal;
    if (judged && place == "decoding") goal = 0;
    report.Add({absl::StrCat("quire_worker/blocked_per_token/", form, "/", place), Median(values),
                "us", goal});
  }
}

}  // namespace

// Lock step is decoding without look-ahead: each launch waits for the answer to its own step.
void BenchWorkerProgram(Report& report, bool small) {
  const SocketServers servers(small ? 8192 : 65536, small ? 1024 : 8192);
  Places with;
  Places without;
  for (int run = 0; run < (small ? 1 : 3); ++run) {
    RunOnce(servers, "stream", run, small, with);
    RunOnce(servers, "lock-step", run, small, without);
  }
  AddPlaces(report, "look_ahead", with, !small);
  AddPlaces(report, "lock_step", without, false);
}

}  // namespace quire::bench
