// The first CUDA device.
#ifndef QUIRE_KERNELS_SIMT_CUDA_RUNTIME_H_
#define QUIRE_KERNELS_SIMT_CUDA_RUNTIME_H_

#include <memory>

#include "kernels/simt/device.h"

namespace quire::kernels::cuda {

// UNSUPPORTED, naming what is missing, if there is none of compute capability 8.0 or more.
Result<std::unique_ptr<Device>> OpenDevice();

}  // namespace quire::kernels::cuda

#endif  // QUIRE_KERNELS_SIMT_CUDA_RUNTIME_H_
