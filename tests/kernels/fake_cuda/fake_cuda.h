// The state of the fake, for tests to set and to look at.
#ifndef QUIRE_TESTS_KERNELS_FAKE_CUDA_FAKE_CUDA_H_
#define QUIRE_TESTS_KERNELS_FAKE_CUDA_FAKE_CUDA_H_

#include <cuda_runtime_api.h>

#include <map>
#include <string>

namespace quire::kernels::testing {

struct FakeCuda {
  int devices = 1;
  int major = 9;
  std::string failing;  // the call that fails next time
  cudaError_t failure = cudaErrorMemoryAllocation;
  cudaError_t last_error = cudaSuccess;

  // What exists now.
  int streams = 0;
  int events = 0;
  std::map<void*, size_t> registered;
  int allocations = 0;

  int synchronizations = 0;  // of the device
  // The last launch.
  const void* kernel = nullptr;
  unsigned ctas = 0;
  unsigned threads = 0;
  size_t shared = 0;
  int allowed_shared = 48 << 10;
  int argument = 0;  // the first int of the arguments
};

extern FakeCuda fake_cuda;

}  // namespace quire::kernels::testing

#endif  // QUIRE_TESTS_KERNELS_FAKE_CUDA_FAKE_CUDA_H_
