// The process of a rank that does not schedule.
#ifndef QUIRE_WORKER_RUNTIME_RANK_PROCESS_H_
#define QUIRE_WORKER_RUNTIME_RANK_PROCESS_H_

#include "absl/status/status.h"
#include "worker/runtime/flags.h"

namespace quire::runtime {

// Maps its region, copies and launches as it is told, until the scheduler's process closes the
// socket options.rank_fd.
absl::Status ServeRank(const WorkerOptions& options);

}  // namespace quire::runtime

#endif  // QUIRE_WORKER_RUNTIME_RANK_PROCESS_H_
