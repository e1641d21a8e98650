// The device backend of a GPU, or of the emulator.
#ifndef QUIRE_KERNELS_CUDA_MAKE_BACKEND_H_
#define QUIRE_KERNELS_CUDA_MAKE_BACKEND_H_

#include <memory>

#include "kernels/device_backend.h"

namespace quire::kernels {

namespace cuda {
Result<std::unique_ptr<DeviceBackend>> MakeBackend();
}  // namespace cuda

namespace emulated {
struct DeviceOptions;
Result<std::unique_ptr<DeviceBackend>> MakeBackend(const DeviceOptions& options);
}  // namespace emulated

}  // namespace quire::kernels

#endif  // QUIRE_KERNELS_CUDA_MAKE_BACKEND_H_
