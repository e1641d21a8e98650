#include "tests/bench/socket_workloads.h"

#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/bench/decode_batch.h"
#include "tests/bench/processors.h"
#include "tests/bench/round_trips.h"
#include "tests/bench/socket_servers.h"
#include "tests/bench/wire.h"

ABSL_FLAG(std::string, cases, "",
          "Of socket_decode only the cases whose name contains this, such as 256/stream/unix");
ABSL_FLAG(uint32_t, calls, 0,
          "Round trips of a case with one socket; 0: as many as its goal needs");

namespace quire::bench {
namespace {

// Many prompts in one step would not fit into one message.
constexpr uint32_t kBeginsPerStep = 512;

struct DecodeCase {
  uint32_t sequences;
  Form form;
  bool tcp;
  // Content of its own, so that nothing of an earlier case is found or merged with.
  uint32_t salt;
  RatioGoals goals;
};

std::string NameOf(const DecodeCase& c) {
  return std::string("socket/advance/") + std::to_string(c.sequences) +
         (c.form == Form::kStream ? "/stream" : "/unary") + (c.tcp ? "/tcp" : "/unix");
}

RatioGoals GoalsOf(uint32_t sequences, Form form, bool tcp) {
  if (tcp) return {};
  if (sequences == 256 && form == Form::kStream) return {1.3, 1.5};
  if (sequences == 256) return {1.3, {}};
  if (sequences == 1024 && form == Form::kStream) return {1.5, {}};
  return {};
}

uint32_t CallsOr(uint32_t usual) {
  const uint32_t given = absl::GetFlag(FLAGS_calls);
  return given > 0 ? given : usual;
}

// Those that --cases chooses.
std::vector<DecodeCase> DecodeCases(bool small) {
  std::vector<DecodeCase> cases;
  uint32_t salt = 0;
  for (const uint32_t sequences : {1u, 64u, 256u, 1024u}) {
    if (small && sequences > 64) continue;
    for (const Form form : {Form::kStream, Form::kUnary}) {
      for (const bool tcp : {false, true}) {
        const RatioGoals goals = small ? RatioGoals{} : GoalsOf(sequences, form, tcp);
        const DecodeCase decode{sequences, form, tcp, ++salt, goals};
        if (absl::StrContains(NameOf(decode), absl::GetFlag(FLAGS_cases))) cases.push_back(decode);
      }
    }
  }
  return cases;
}

void RunDecode(Report& report, const SocketServers& servers, const DecodeCase& c, uint32_t calls) {
  const std::string name = NameOf(c);
  WireWorker worker(servers.QuireAddress(c.tcp), name, c.form);
  EchoCaller echo(servers.EchoAddress(c.tcp), c.form);
  DecodeBatch batch(c.sequences, c.salt);
  for (uint32_t i = 0; i < c.sequences; i += kBeginsPerStep) {
    batch.FillBegins(worker.Prepare(), i, kBeginsPerStep);
    worker.Call();
  }
  RoundTrips trips;
  for (uint32_t i = 0; i < calls; ++i) {
    batch.FillAdvance(worker.Prepare());
    TimePair(servers, worker, echo, trips);
  }
  AddRoundTrips(report, name, trips, c.goals);
  batch.FillFinishes(worker.Prepare());
  worker.Call();
  // Completes the step before, so that the blocks are free for the next case.
  worker.Prepare();
  worker.Call();
}

}  // namespace

absl::Status CheckCases(std::string_view workload, bool small) {
  const std::string cases = absl::GetFlag(FLAGS_cases);
  if (cases.empty()) return absl::OkStatus();
  if (!workload.empty() && workload != "socket_decode") {
    return absl::InvalidArgumentError("--cases: only of the workload socket_decode");
  }
  if (!DecodeCases(small).empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--cases=", cases, ": in no name of a case",
                                                 small ? " of --smoke" : "",
                                                 "; one is socket/advance/64/stream/unix"));
}

void BenchSocketDecode(Report& report, bool small) {
  const SocketServers servers(small ? 4096 : 262144, small ? 2048 : 8192);
  const Processors processors({servers.quire().pid(), servers.echo().pid()});
  for (const DecodeCase& decode : DecodeCases(small)) {
    const uint32_t calls = small ? 20 : (decode.goals.p50 ? 3000 : 1000);
    RunDecode(report, servers, decode, CallsOr(calls));
  }
}

void BenchSocketBegin(Report& report, bool small) {
  const uint32_t length = small ? 2048 : 32768;
  const SocketServers servers(16384, length);
  const Processors processors({servers.quire().pid(), servers.echo().pid()});
  WireWorker worker(servers.QuireAddress(false), "begin", Form::kStream);
  EchoCaller echo(servers.EchoAddress(false), Form::kStream);
  const auto prepare = [&](uint64_t sequence) {
    v1::BeginOperation& begin = *worker.Prepare().add_operations()->mutable_begin();
    begin.set_sequence(sequence);
    for (uint32_t t = 0; t < length; ++t) begin.add_tokens(t + 17);
  };
  RoundTrips cold;
  RoundTrips trips;
  const uint32_t calls = CallsOr(small ? 5 : 400);
  for (uint64_t sequence = 1; sequence <= calls; ++sequence) {
    prepare(sequence);
    TimePair(servers, worker, echo, sequence == 1 ? cold : trips);
    v1::StepBatch& rest = worker.Prepare();
    v1::CommitOperation& commit = *rest.add_operations()->mutable_commit();
    commit.set_sequence(sequence);
    commit.set_start_length(length);
    commit.set_committed_length(length);
    rest.add_operations()->mutable_finish()->set_sequence(sequence);
    worker.Call();
  }
  const std::string name = "socket/begin/" + std::to_string(length / 1024) + "k/cached/stream/unix";
  AddRoundTrips(report, name, trips, small ? RatioGoals{} : RatioGoals{1.5, {}});
}

}  // namespace quire::bench
