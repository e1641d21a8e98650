// Which options count for which workload.
#ifndef QUIRE_WORKER_RUNTIME_FLAG_USES_H_
#define QUIRE_WORKER_RUNTIME_FLAG_USES_H_

#include "absl/status/status.h"
#include "worker/runtime/flags.h"

namespace quire::runtime {

// Needs all options to be read. INVALID_ARGUMENT naming one that was changed and that nothing would
// look at.
absl::Status CheckUses(WorkerOptions& options);

}  // namespace quire::runtime

#endif  // QUIRE_WORKER_RUNTIME_FLAG_USES_H_
