// Which kernels the model runs on.
#ifndef QUIRE_WORKER_MODEL_KERNEL_CHOICE_H_
#define QUIRE_WORKER_MODEL_KERNEL_CHOICE_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"

namespace quire::model {

struct KernelChoice {
  std::string backend = "cpu";  // a name that kernels::CreateBackend knows
  int threads = 1;              // of "cpu"
};

// INVALID_ARGUMENT for an unknown name or thread count; UNIMPLEMENTED if this build or machine
// lacks the backend.
absl::StatusOr<std::unique_ptr<kernels::Backend>> MakeKernels(const KernelChoice& choice);

absl::Status FromKernel(const kernels::Status& status);

}  // namespace quire::model

#endif  // QUIRE_WORKER_MODEL_KERNEL_CHOICE_H_
