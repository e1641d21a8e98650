// quire-worker: a model that computes over block tables of a Quire server.
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <memory>

#include "worker/client/cache_client.h"
#include "worker/model/linear.h"
#include "worker/model/transformer.h"
#include "worker/runtime/flags.h"
#include "worker/runtime/runner.h"
#include "worker/runtime/scheduler.h"
#include "worker/runtime/summary.h"
#include "worker/runtime/verifier.h"
#include "worker/runtime/workload.h"

namespace quire::runtime {
namespace {

// A line that overwrites itself on a terminal, or one line a second elsewhere.
class ProgressPrinter {
 public:
  ProgressPrinter(bool enabled, const Scheduler& scheduler)
      : enabled_(enabled), scheduler_(scheduler), terminal_(isatty(fileno(stderr)) != 0) {}

  void operator()(double seconds) {
    const double interval = terminal_ ? 0.2 : 1.0;
    if (!enabled_ || seconds - last_ < interval) return;
    last_ = seconds;
    const std::string line =
        ProgressLine(scheduler_.stats(), seconds, scheduler_.unfinished(),
                     scheduler_.pool_counts().free, scheduler_.pool_counts().evictable);
    std::cerr << (terminal_ ? "\r" : "") << line << (terminal_ ? "\033[K" : "\n") << std::flush;
  }

  void Finish() const {
    if (enabled_ && terminal_) std::cerr << "\n";
  }

 private:
  const bool enabled_;
  const Scheduler& scheduler_;
  const bool terminal_;
  double last_ = 0;
};

absl::StatusOr<std::unique_ptr<Workload>> MakeWorkload(const WorkerOptions& options) {
  if (options.workload == "samples") return MakeSamples(options.load);
  if (options.workload == "beam") return MakeBeam(options.load);
  return MakeChat(options.load);
}

absl::Status VerifyAll(model::Transformer& model, const std::vector<RequestResult>& results,
                       Summary& summary) {
  const SystemClock clock;
  const TimePoint start = clock.Now();
  Verifier verifier(model, VerifyTolerance(model.config().kv_dtype));
  for (const RequestResult& result : results) {
    if (absl::Status status = verifier.Check(result); !status.ok()) return status;
  }
  summary.verification = verifier.report();
  summary.verification_seconds = std::chrono::duration<double>(clock.Now() - start).count();
  return absl::OkStatus();
}

absl::StatusOr<Summary> Run(WorkerOptions options) {
  model::SetMatrixThreads(options.threads);
  model::SeededWeights weights(options.model_seed);
  auto model = model::Transformer::Create(options.model, weights);
  if (!model.ok()) return model.status();
  options.client.model_fingerprint = (*model)->fingerprint();
  auto client = client::CacheClient::Attach(options.client);
  if (!client.ok()) return client.status();
  options.load.max_sequence_tokens = (*client)->pool().max_sequence_tokens;
  const SystemClock clock;
  auto scheduler = Scheduler::Create(**client, **model, options.scheduler, clock);
  if (!scheduler.ok()) return scheduler.status();
  auto workload = MakeWorkload(options);
  if (!workload.ok()) return workload.status();

  ProgressPrinter progress(options.progress, **scheduler);
  auto outcome = RunWorkload(**scheduler, **workload, options.limits, options.verify, clock,
                             [&progress](double seconds) { progress(seconds); });
  progress.Finish();
  if (!outcome.ok()) return outcome.status();
  Summary summary{.workload = options.workload,
                  .seconds = outcome->seconds,
                  .stats = (*scheduler)->stats(),
                  .verification = std::nullopt};
  for (const RequestResult& result : outcome->results) {
    if (!result.status.ok()) std::cerr << "request failed: " << result.status << "\n";
  }
  if (options.verify) {
    const absl::Status status = VerifyAll(**model, outcome->results, summary);
    if (!status.ok()) return status;
  }
  if (absl::Status status = (*client)->Detach(); !status.ok()) {
    std::cerr << "detach: " << status << "\n";
  }
  return summary;
}

int Main(int argc, char** argv) {
  absl::StatusOr<WorkerOptions> options = ParseFlags(argc, argv);
  if (!options.ok()) {
    std::cerr << options.status().message() << "\n";
    return 2;
  }
  const absl::StatusOr<Summary> summary = Run(*options);
  if (!summary.ok()) {
    std::cerr << "quire-worker: " << summary.status() << "\n";
    return 1;
  }
  std::cout << ToText(*summary);
  if (!options->json_file.empty()) {
    if (absl::Status status = WriteFile(options->json_file, ToJson(*summary)); !status.ok()) {
      std::cerr << status << "\n";
      return 1;
    }
  }
  const bool failed = summary->stats.failed_requests > 0 ||
                      (summary->verification.has_value() && !summary->verification->identical());
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace quire::runtime

int main(int argc, char** argv) { return quire::runtime::Main(argc, argv); }
