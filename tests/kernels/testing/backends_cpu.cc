#include <cstdlib>
#include <utility>

#include "hwy/highway.h"
#include "tests/kernels/testing/backends.h"

namespace quire::kernels::testing {

std::string TestedName() { return "cpu"; }

bool IsSlow() { return false; }

std::unique_ptr<Backend> MakeTested(int threads) {
  Result<std::unique_ptr<Backend>> backend = CreateBackend("cpu", {.threads = threads});
  if (!backend.ok()) std::abort();
  return std::move(*backend);
}

void ForEachTarget(const std::function<void(const std::string& name)>& body) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    body(hwy::TargetName(target));
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace quire::kernels::testing
