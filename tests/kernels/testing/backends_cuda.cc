// The CUDA backend on the first device. A program without one says so and exits with 3.
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "tests/kernels/testing/backends.h"

namespace quire::kernels::testing {

std::string TestedName() { return "cuda"; }

bool IsSlow() { return false; }

std::unique_ptr<Backend> MakeTested(int) {
  Result<std::unique_ptr<Backend>> backend = CreateBackend("cuda", {});
  if (backend.ok()) return std::move(*backend);
  std::fprintf(stderr, "no CUDA device: %s\n", backend.status().message().c_str());
  std::exit(3);
}

void ForEachTarget(const std::function<void(const std::string& name)>& body) { body("cuda"); }

}  // namespace quire::kernels::testing
