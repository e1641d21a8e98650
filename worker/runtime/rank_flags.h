// Command line of a worker of several ranks.
#ifndef QUIRE_WORKER_RUNTIME_RANK_FLAGS_H_
#define QUIRE_WORKER_RUNTIME_RANK_FLAGS_H_

#include "absl/status/status.h"
#include "worker/runtime/flags.h"

namespace quire::runtime {

// Needs the model to be read. INVALID_ARGUMENT if its heads cannot be shared out.
absl::Status ReadRanks(WorkerOptions& options);

}  // namespace quire::runtime

#endif  // QUIRE_WORKER_RUNTIME_RANK_FLAGS_H_
