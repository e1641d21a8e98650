// The device backend on a GPU, or on the emulator.
#ifndef QUIRE_KERNELS_CUDA_MAKE_BACKEND_H_
#define QUIRE_KERNELS_CUDA_MAKE_BACKEND_H_

#include <memory>

#include "kernels/simt/device.h"

namespace quire::kernels {

namespace cuda {
Result<std::unique_ptr<DeviceBackend>> MakeBackend(std::unique_ptr<Device> device);
}  // namespace cuda

namespace emulated {
Result<std::unique_ptr<DeviceBackend>> MakeBackend(std::unique_ptr<Device> device);
}  // namespace emulated

}  // namespace quire::kernels

#endif  // QUIRE_KERNELS_CUDA_MAKE_BACKEND_H_
