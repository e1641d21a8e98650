// One run of quire-worker: a workload through the scheduler to its summary.
#ifndef QUIRE_WORKER_RUNTIME_WORKER_RUN_H_
#define QUIRE_WORKER_RUNTIME_WORKER_RUN_H_

#include <memory>

#include "absl/status/statusor.h"
#include "worker/model/transformer.h"
#include "worker/runtime/flags.h"
#include "worker/runtime/progress_printer.h"
#include "worker/runtime/summary.h"

namespace quire::runtime {

absl::StatusOr<std::unique_ptr<model::Transformer>> MakeModel(const WorkerOptions& options);

// Attaches, runs, verifies if asked to, detaches. A run that the server ended early has a summary
// too, with the error in it. `argv` starts the second process of prefill-decode.
absl::StatusOr<Summary> RunWorker(WorkerOptions options, char** argv, ProgressPrinter& progress);

}  // namespace quire::runtime

#endif  // QUIRE_WORKER_RUNTIME_WORKER_RUN_H_
