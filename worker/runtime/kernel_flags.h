// Flags of quire-worker that choose the kernels.
#ifndef QUIRE_WORKER_RUNTIME_KERNEL_FLAGS_H_
#define QUIRE_WORKER_RUNTIME_KERNEL_FLAGS_H_

#include "absl/status/statusor.h"
#include "worker/model/kernel_choice.h"

namespace quire::runtime {

// INVALID_ARGUMENT names the flag, also where this build or machine lacks the backend: better here
// than after the worker has attached.
absl::StatusOr<model::KernelChoice> ReadKernels();

}  // namespace quire::runtime

#endif  // QUIRE_WORKER_RUNTIME_KERNEL_FLAGS_H_
