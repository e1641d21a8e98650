// Command line of the workloads.
#ifndef QUIRE_WORKER_RUNTIME_WORKLOAD_FLAGS_H_
#define QUIRE_WORKER_RUNTIME_WORKLOAD_FLAGS_H_

#include "absl/status/status.h"
#include "worker/runtime/flags.h"

namespace quire::runtime {

// Needs the model to be read. INVALID_ARGUMENT names the flag.
absl::Status ReadLoad(WorkerOptions& options);

}  // namespace quire::runtime

#endif  // QUIRE_WORKER_RUNTIME_WORKLOAD_FLAGS_H_
