#include "worker/model/kernel_choice.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace quire::model {

absl::StatusOr<std::unique_ptr<kernels::Backend>> MakeKernels(const KernelChoice& choice) {
  auto backend = kernels::CreateBackend(choice.backend, {.threads = choice.threads});
  if (!backend.ok()) return FromKernel(backend.status());
  return std::move(*backend);
}

absl::Status FromKernel(const kernels::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const std::string text = absl::StrCat(status.argument(), ": ", status.message());
  switch (status.code()) {
    case kernels::StatusCode::kInvalidArgument:
      return absl::InvalidArgumentError(text);
    case kernels::StatusCode::kOutOfRange:
      return absl::OutOfRangeError(text);
    case kernels::StatusCode::kUnsupported:
      return absl::UnimplementedError(text);
    default:
      return absl::InternalError(text);
  }
}

}  // namespace quire::model
