// quire-worker: a model that computes over block tables of a Quire server.
#include <iostream>
#include <memory>

#include "cache_service/base/process_files.h"
#include "worker/client/cache_client.h"
#include "worker/runtime/flags.h"
#include "worker/runtime/handoff.h"
#include "worker/runtime/prefill_worker.h"
#include "worker/runtime/progress_printer.h"
#include "worker/runtime/rank_process.h"
#include "worker/runtime/server_notice_text.h"
#include "worker/runtime/stop_signal.h"
#include "worker/runtime/summary.h"
#include "worker/runtime/trace.h"
#include "worker/runtime/trace_replay.h"
#include "worker/runtime/worker_run.h"

namespace quire::runtime {
namespace {

// The process that only computes prompts.
absl::Status Prefill(WorkerOptions options) {
  auto model = MakeModel(options);
  if (!model.ok()) return model.status();
  options.client.model_fingerprint = (*model)->fingerprint();
  auto client = client::CacheClient::Attach(options.client);
  if (!client.ok()) return client.status();
  auto worker =
      PrefillWorker::Create(**client, **model, options.scheduler.chunk_tokens, options.kernels);
  if (!worker.ok()) return worker.status();
  const absl::Status status = ServePrefill(**worker, options.prefill_fd);
  // A server that ends at the same time forgets this worker by itself.
  (*client)->Detach().IgnoreError();
  return status;
}

absl::StatusOr<ReplayReport> Replay(WorkerOptions options, ProgressPrinter& progress) {
  const absl::StatusOr<std::vector<TraceRequest>> trace = ReadTrace(options.trace_file);
  if (!trace.ok()) return trace.status();
  options.client.layout.reset();
  options.client.model_fingerprint = "trace";
  auto client = client::CacheClient::Attach(options.client);
  if (!client.ok()) return client.status();
  auto report =
      ReplayTrace(**client, *trace, options.limits.requests, [&progress](const ReplayReport& now) {
        if (progress.Due(now.seconds)) progress.Show(ToLine(now));
      });
  progress.Finish();
  if (absl::Status status = (*client)->Detach(); !status.ok()) {
    std::cerr << "detach: " << Describe(status) << "\n";
  }
  return report;
}

// Prints text and writes the JSON; false if that failed.
bool Publish(const WorkerOptions& options, const std::string& text, const std::string& json) {
  std::cout << text;
  if (options.json_file.empty()) return true;
  const absl::Status status = WriteFile(options.json_file, json);
  if (!status.ok()) std::cerr << Describe(status) << "\n";
  return status.ok();
}

int Fail(const char* program, const absl::Status& status) {
  std::cerr << program << ": " << Describe(status) << "\n";
  return 1;
}

int RunReplay(const WorkerOptions& options, ProgressPrinter& progress) {
  const absl::StatusOr<ReplayReport> report = Replay(options, progress);
  if (!report.ok()) return Fail("quire-worker", report.status());
  return Publish(options, ToText(*report), ToJson(*report)) ? 0 : 1;
}

int RunPrefill(const WorkerOptions& options) {
  const absl::Status status = Prefill(options);
  return status.ok() ? 0 : Fail("quire-worker (prefill)", status);
}

int RunModel(const WorkerOptions& options, char** argv, ProgressPrinter& progress) {
  const absl::StatusOr<Summary> summary = RunWorker(options, argv, progress);
  if (!summary.ok()) return Fail("quire-worker", summary.status());
  const bool published = Publish(options, ToText(*summary), ToJson(*summary));
  if (!summary->error.empty()) std::cerr << "quire-worker: " << summary->error << "\n";
  return summary->good() && published ? 0 : 1;
}

int Main(int argc, char** argv) {
  OpenStandardFiles();
  absl::StatusOr<WorkerOptions> options = ParseFlags(argc, argv);
  if (!options.ok()) {
    std::cerr << options.status().message() << "\n";
    return 2;
  }
  ProgressPrinter progress(options->progress);
  const std::string who = options->prefill_fd >= 0 ? "quire-worker (prefill): " : "quire-worker: ";
  options->client.on_server_notice = [&, server = options->client.server](const auto& notice) {
    progress.Print(who + ToLine(notice, server));
  };
  if (options->rank_fd >= 0) {
    LeaveSignalsToParent();
    const absl::Status status = ServeRank(*options);
    return status.ok() ? 0 : Fail("quire-worker (rank)", status);
  }
  if (options->prefill_fd >= 0) {
    LeaveSignalsToParent();
    return RunPrefill(*options);
  }
  if (options->workload == "trace" && options->trace_without_model) {
    return RunReplay(*options, progress);
  }
  options->limits.stop = options->client.stop = &StopOnSignals();
  return RunModel(*options, argv, progress);
}

}  // namespace
}  // namespace quire::runtime

int main(int argc, char** argv) { return quire::runtime::Main(argc, argv); }
