// The backend that a test program tests. The same test sources make one program per backend; which
// of backends_*.cc is linked decides.
#ifndef QUIRE_TESTS_KERNELS_TESTING_BACKENDS_H_
#define QUIRE_TESTS_KERNELS_TESTING_BACKENDS_H_

#include <functional>
#include <memory>
#include <string>

#include "kernels/backend.h"

namespace quire::kernels::testing {

// "cpu", "emulated" (the CUDA sources in the emulator) or "cuda".
std::string TestedName();

// Of the current variant. `threads` is for "cpu".
std::unique_ptr<Backend> MakeTested(int threads = 2);

// Runs body once per variant: "cpu": every Highway target that was compiled and this machine has;
// "emulated": every moment at which an asynchronous copy may become visible; "cuda": once.
// Backends that the body makes are of that variant.
void ForEachTarget(const std::function<void(const std::string& name)>& body);

// The emulator does about as much in a minute as the CPU kernels in a second. Batches and lengths
// whose size is not the point of a test are divided by ForSlow there.
bool IsSlow();

template <typename Number>
Number ForSlow(Number size, Number divisor) {
  return IsSlow() ? (size + divisor - 1) / divisor : size;
}

// For comparison; must exist.
std::unique_ptr<Backend> MakeReference();

}  // namespace quire::kernels::testing

#endif  // QUIRE_TESTS_KERNELS_TESTING_BACKENDS_H_
