// quire-worker: a model that computes over block tables of a Quire server.
#include <algorithm>
#include <iostream>
#include <memory>
#include <thread>

#include "worker/client/cache_client.h"
#include "worker/model/linear.h"
#include "worker/model/transformer.h"
#include "worker/runtime/flags.h"
#include "worker/runtime/handoff.h"
#include "worker/runtime/prefill_process.h"
#include "worker/runtime/prefill_worker.h"
#include "worker/runtime/progress_printer.h"
#include "worker/runtime/runner.h"
#include "worker/runtime/scheduler.h"
#include "worker/runtime/summary.h"
#include "worker/runtime/trace.h"
#include "worker/runtime/trace_replay.h"
#include "worker/runtime/verifier.h"
#include "worker/runtime/workload.h"

namespace quire::runtime {
namespace {

absl::StatusOr<std::unique_ptr<Workload>> MakeWorkload(const WorkerOptions& options) {
  if (options.workload == "samples") return MakeSamples(options.load);
  if (options.workload == "beam") return MakeBeam(options.load);
  if (options.workload == "trace") {
    absl::StatusOr<std::vector<TraceRequest>> trace = ReadTrace(options.trace_file);
    if (!trace.ok()) return trace.status();
    return MakeTrace(*std::move(trace), options.load, options.trace_scale);
  }
  return MakeChat(options.load);
}

absl::StatusOr<std::unique_ptr<model::Transformer>> MakeModel(const WorkerOptions& options) {
  model::SetMatrixThreads(options.threads);
  model::SeededWeights weights(options.model_seed);
  return model::Transformer::Create(options.model, weights);
}

absl::Status VerifyAll(const WorkerOptions& options, const std::vector<RequestResult>& results,
                       Summary& summary) {
  const SystemClock clock;
  const TimePoint start = clock.Now();
  const uint32_t threads = std::max(1u, std::thread::hardware_concurrency());
  std::cerr << "verifying " << results.size() << " requests without any sharing\n";
  auto report = VerifyResults(results, threads, [&options] { return MakeModel(options); });
  if (!report.ok()) return report.status();
  summary.verification = *std::move(report);
  summary.verification_seconds = std::chrono::duration<double>(clock.Now() - start).count();
  return absl::OkStatus();
}

// For people: the reason before the text.
std::string Describe(const absl::Status& status) {
  if (!client::HasReason(status)) return status.ToString();
  const Error error = FromStatus(status);
  return std::string(ReasonName(error.reason)) + ": " + error.message;
}

// The process that only computes prompts.
absl::Status Prefill(WorkerOptions options) {
  auto model = MakeModel(options);
  if (!model.ok()) return model.status();
  options.client.model_fingerprint = (*model)->fingerprint();
  auto client = client::CacheClient::Attach(options.client);
  if (!client.ok()) return client.status();
  auto worker =
      PrefillWorker::Create(**client, **model, options.scheduler.chunk_tokens, options.threads);
  if (!worker.ok()) return worker.status();
  absl::Status status = ServePrefill(**worker, options.prefill_fd);
  status.Update((*client)->Detach());
  return status;
}

absl::StatusOr<Summary> Run(WorkerOptions options, char** argv) {
  auto model = MakeModel(options);
  if (!model.ok()) return model.status();
  options.client.model_fingerprint = (*model)->fingerprint();
  auto client = client::CacheClient::Attach(options.client);
  if (!client.ok()) return client.status();
  options.load.max_sequence_tokens = (*client)->pool().max_sequence_tokens;
  const SystemClock clock;
  options.load.clock = &clock;
  auto scheduler = Scheduler::Create(**client, **model, options.scheduler, clock);
  if (!scheduler.ok()) return scheduler.status();
  auto workload = MakeWorkload(options);
  if (!workload.ok()) return workload.status();
  std::optional<PrefillProcess> prefill;
  if (options.workload == "prefill-decode") {
    auto started = PrefillProcess::Start(options.client.worker, argv);
    if (!started.ok()) return started.status();
    prefill.emplace(*std::move(started));
    auto handoff = std::make_unique<HandoffWorkload>(*std::move(workload), prefill->TakeSocket());
    (*scheduler)->set_on_begun([raw = handoff.get()](const Request& request) {
      raw->OnBegun(request);
    });
    workload = std::move(handoff);
  }

  ProgressPrinter progress(options.progress);
  const auto show = [&](double seconds) {
    if (!progress.Due(seconds)) return;
    const client::PoolCounts& counts = (*scheduler)->pool_counts();
    progress.Show(ProgressLine((*scheduler)->stats(), seconds, (*scheduler)->unfinished(),
                               counts.free, counts.evictable));
  };
  auto outcome = RunWorkload(**scheduler, **workload, options.limits, options.verify, clock, show);
  progress.Finish();
  if (!outcome.ok()) return outcome.status();
  // Closing the socket ends the other process.
  workload->reset();
  if (prefill.has_value()) {
    if (absl::Status status = prefill->Wait(); !status.ok()) return status;
  }
  Summary summary{.workload = options.workload,
                  .seconds = outcome->seconds,
                  .stats = (*scheduler)->stats(),
                  .verification = std::nullopt};
  for (const RequestResult& result : outcome->results) {
    if (!result.status.ok()) std::cerr << "request failed: " << Describe(result.status) << "\n";
  }
  if (options.verify) {
    const absl::Status status = VerifyAll(options, outcome->results, summary);
    if (!status.ok()) return status;
  }
  if (absl::Status status = (*client)->Detach(); !status.ok()) {
    std::cerr << "detach: " << Describe(status) << "\n";
  }
  return summary;
}

absl::StatusOr<ReplayReport> Replay(WorkerOptions options) {
  const absl::StatusOr<std::vector<TraceRequest>> trace = ReadTrace(options.trace_file);
  if (!trace.ok()) return trace.status();
  options.client.layout.reset();
  options.client.model_fingerprint = "trace";
  auto client = client::CacheClient::Attach(options.client);
  if (!client.ok()) return client.status();
  ProgressPrinter progress(options.progress);
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

int Main(int argc, char** argv) {
  absl::StatusOr<WorkerOptions> options = ParseFlags(argc, argv);
  if (!options.ok()) {
    std::cerr << options.status().message() << "\n";
    return 2;
  }
  if (options->workload == "trace" && options->trace_without_model) {
    const absl::StatusOr<ReplayReport> report = Replay(*options);
    if (report.ok()) return Publish(*options, ToText(*report), ToJson(*report)) ? 0 : 1;
    std::cerr << "quire-worker: " << Describe(report.status()) << "\n";
    return 1;
  }
  if (options->prefill_fd >= 0) {
    const absl::Status status = Prefill(*options);
    if (!status.ok()) std::cerr << "quire-worker (prefill): " << Describe(status) << "\n";
    return status.ok() ? 0 : 1;
  }
  const absl::StatusOr<Summary> summary = Run(*options, argv);
  if (!summary.ok()) {
    std::cerr << "quire-worker: " << Describe(summary.status()) << "\n";
    return 1;
  }
  const bool published = Publish(*options, ToText(*summary), ToJson(*summary));
  const bool failed = summary->stats.failed_requests > 0 ||
                      (summary->verification.has_value() && !summary->verification->identical());
  return failed || !published ? 1 : 0;
}

}  // namespace
}  // namespace quire::runtime

int main(int argc, char** argv) { return quire::runtime::Main(argc, argv); }
