#include "worker/runtime/kernel_flags.h"

#include <string>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"

ABSL_FLAG(std::string, backend, "cpu",
          "Attention and block copies: cpu; cuda, on the first GPU, the blocks staying in host "
          "memory; reference, slow, to compare with.");
ABSL_FLAG(int32_t, threads, 1, "Threads of the kernels and of the matrix library, each.");

namespace quire::runtime {

absl::StatusOr<model::KernelChoice> ReadKernels() {
  model::KernelChoice choice{absl::GetFlag(FLAGS_backend), absl::GetFlag(FLAGS_threads)};
  if (choice.threads < 1) return absl::InvalidArgumentError("--threads must be positive");
  const auto kernels = model::MakeKernels(choice);
  if (kernels.ok()) return choice;
  return absl::InvalidArgumentError(absl::StrCat("--backend=", choice.backend, " --threads=",
                                                 choice.threads, ": ", kernels.status().message()));
}

}  // namespace quire::runtime
