#include "worker/runtime/worker_run.h"

#include <algorithm>
#include <iostream>
#include <optional>
#include <thread>
#include <utility>

#include "worker/client/cache_client.h"
#include "worker/model/linear.h"
#include "worker/runtime/child_process.h"
#include "worker/runtime/handoff.h"
#include "worker/runtime/local_executor.h"
#include "worker/runtime/rank_executor.h"
#include "worker/runtime/runner.h"
#include "worker/runtime/scheduler.h"
#include "worker/runtime/server_notice_text.h"
#include "worker/runtime/text_log.h"
#include "worker/runtime/trace.h"
#include "worker/runtime/verifier.h"
#include "worker/runtime/workload.h"

namespace quire::runtime {
namespace {

using Trace = std::vector<TraceRequest>;

// Read first: a file that is not there must not wait for a server.
absl::StatusOr<Trace> ReadTraceOf(const WorkerOptions& options) {
  if (options.workload != "trace") return Trace();
  return ReadTrace(options.trace_file);
}

std::unique_ptr<Workload> MakeWorkload(const WorkerOptions& options, Trace trace) {
  if (options.workload == "samples") return MakeSamples(options.load);
  if (options.workload == "beam") return MakeBeam(options.load);
  if (options.workload == "trace") {
    return MakeTrace(std::move(trace), options.load, options.trace_scale);
  }
  return MakeChat(options.load);
}

absl::StatusOr<std::unique_ptr<Workload>> WithTexts(const WorkerOptions& options,
                                                    std::unique_ptr<Workload> workload) {
  if (options.texts_file.empty()) return workload;
  absl::StatusOr<std::unique_ptr<TextLog>> log = TextLog::Open(options.texts_file);
  if (!log.ok()) return log.status();
  return std::make_unique<LoggedWorkload>(std::move(workload), *std::move(log));
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

absl::StatusOr<std::unique_ptr<Executor>> MakeExecutor(const WorkerOptions& options,
                                                       model::Transformer& model, char** argv) {
  if (options.client.ranks == 1) return std::make_unique<LocalExecutor>(model, options.kernels);
  return RankExecutor::Create(options, argv);
}

// The process that computes the prompts, if the workload has one; `workload` then gets them there.
absl::StatusOr<std::optional<ChildProcess>> StartPrefill(const WorkerOptions& options, char** argv,
                                                         Scheduler& scheduler,
                                                         std::unique_ptr<Workload>& workload,
                                                         HandoffWorkload*& handoff) {
  if (options.workload != "prefill-decode") return std::nullopt;
  auto started = ChildProcess::Start(argv, [&](int socket) {
    return std::vector<std::string>{"--name=" + options.client.worker + "-prefill",
                                    "--prefill_fd=" + std::to_string(socket)};
  });
  if (!started.ok()) return started.status();
  std::optional<ChildProcess> prefill(*std::move(started));
  auto made = std::make_unique<HandoffWorkload>(std::move(workload), prefill->TakeSocket());
  handoff = made.get();
  scheduler.set_on_begun([raw = handoff](const Request& request) { raw->OnBegun(request); });
  workload = std::move(made);
  return prefill;
}

// `handoff` may come and go meanwhile.
client::TellServerNotice TellHandoffToo(client::TellServerNotice tell, HandoffWorkload*& handoff) {
  return [tell = std::move(tell), &handoff](const client::ServerNotice& notice) {
    if (handoff != nullptr && notice.kind == client::ServerNotice::Kind::kDraining) {
      handoff->OnDraining();
    }
    if (tell != nullptr) tell(notice);
  };
}

// After the executor, whose processes map the pool as well. A run that failed may have no lease.
absl::Status EndWorker(client::CacheClient& client, std::unique_ptr<Scheduler>& scheduler,
                       const absl::Status& outcome) {
  scheduler.reset();
  const absl::Status status = client.Detach();
  return outcome.ok() ? status : absl::OkStatus();
}

Progress ShowOn(ProgressPrinter& progress, const Scheduler& scheduler) {
  return [&](double seconds) {
    if (!progress.Due(seconds)) return;
    const client::PoolCounts& counts = scheduler.pool_counts();
    progress.Show(ProgressLine(scheduler.stats(), seconds, scheduler.unfinished(), counts.free,
                               counts.evictable));
  };
}

}  // namespace

absl::StatusOr<std::unique_ptr<model::Transformer>> MakeModel(const WorkerOptions& options) {
  model::SetMatrixThreads(options.kernels.threads);
  model::SeededWeights weights(options.model_seed);
  return model::Transformer::Create(options.model, weights);
}

absl::StatusOr<Summary> RunWorker(WorkerOptions options, char** argv, ProgressPrinter& progress) {
  absl::StatusOr<Trace> trace = ReadTraceOf(options);
  if (!trace.ok()) return trace.status();
  auto model = MakeModel(options);
  if (!model.ok()) return model.status();
  auto executor = MakeExecutor(options, **model, argv);
  if (!executor.ok()) return executor.status();
  options.client.model_fingerprint = (*model)->fingerprint();
  HandoffWorkload* handoff = nullptr;
  options.client.on_server_notice =
      TellHandoffToo(std::move(options.client.on_server_notice), handoff);
  auto client = client::CacheClient::Attach(options.client);
  if (!client.ok()) return client.status();
  options.load.max_sequence_tokens = (*client)->pool().max_sequence_tokens;
  const SystemClock clock;
  options.load.clock = &clock;
  auto scheduler = Scheduler::Create(**client, *std::move(executor), options.scheduler, clock);
  if (!scheduler.ok()) return scheduler.status();
  auto made = WithTexts(options, MakeWorkload(options, *std::move(trace)));
  if (!made.ok()) return made.status();
  std::unique_ptr<Workload> workload = *std::move(made);
  auto prefill = StartPrefill(options, argv, **scheduler, workload, handoff);
  if (!prefill.ok()) return prefill.status();

  const RunOutcome outcome = RunWorkload(**scheduler, *workload, options.limits, options.verify,
                                         clock, ShowOn(progress, **scheduler));
  progress.Finish();
  // Closing the socket ends the other process.
  handoff = nullptr;
  workload.reset();
  if (prefill->has_value()) {
    // It may be waiting for a server that this process has given up.
    if (!outcome.status.ok()) (*prefill)->Kill();
    const absl::Status status = (*prefill)->Wait();
    if (!status.ok()) std::cerr << "the prefill process failed: its prompts were computed here\n";
  }
  Summary summary{.workload = options.workload,
                  .seconds = outcome.seconds,
                  .stats = (*scheduler)->stats(),
                  .unfinished = (*scheduler)->unfinished(),
                  .error = outcome.status.ok() ? "" : Describe(outcome.status),
                  .verification = std::nullopt};
  for (const RequestResult& result : outcome.results) {
    if (!result.status.ok()) std::cerr << "request failed: " << Describe(result.status) << "\n";
  }
  // First, because to verify may take as long as to run, and others want the blocks.
  if (absl::Status status = EndWorker(**client, *scheduler, outcome.status); !status.ok()) {
    std::cerr << "detach: " << Describe(status) << "\n";
  }
  if (options.verify) {
    const absl::Status status = VerifyAll(options, outcome.results, summary);
    if (!status.ok()) return status;
  }
  return summary;
}

}  // namespace quire::runtime
