// The CPU backend: Highway kernels picked at run time, tasks shared out to a few threads.
#ifndef QUIRE_KERNELS_CPU_CPU_BACKEND_H_
#define QUIRE_KERNELS_CPU_CPU_BACKEND_H_

#include <memory>

#include "kernels/backend.h"

namespace quire::kernels::cpu {

// threads in 1..256, the calling thread included.
Result<std::unique_ptr<Backend>> MakeCpuBackend(int threads);

}  // namespace quire::kernels::cpu

#endif  // QUIRE_KERNELS_CPU_CPU_BACKEND_H_
