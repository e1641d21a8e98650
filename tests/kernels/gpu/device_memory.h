// Device memory for the length of a case.
#ifndef QUIRE_TESTS_KERNELS_GPU_DEVICE_MEMORY_H_
#define QUIRE_TESTS_KERNELS_GPU_DEVICE_MEMORY_H_

#include <algorithm>
#include <vector>

#include "kernels/device_backend.h"

namespace quire::kernels::gpu {

class DeviceMemory {
 public:
  explicit DeviceMemory(DeviceBackend& backend) : backend_(backend) {}

  ~DeviceMemory() {
    for (std::byte* part : parts_) backend_.FreeDevice(part);
  }

  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  Result<std::byte*> Take(int64_t bytes) {
    Result<std::byte*> part =
        backend_.AllocateDevice(static_cast<size_t>(std::max<int64_t>(bytes, 16)));
    if (part.ok()) parts_.push_back(*part);
    return part;
  }

 private:
  DeviceBackend& backend_;
  std::vector<std::byte*> parts_;
};

}  // namespace quire::kernels::gpu

#endif  // QUIRE_TESTS_KERNELS_GPU_DEVICE_MEMORY_H_
