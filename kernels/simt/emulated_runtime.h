// The emulator as a device.
//
// With `late_seed` nothing runs when it is queued. Someone who waits makes work run, stream by
// stream in a random order that events allow, and no more of it than needed: a missing event shows
// as wrong bytes.
#ifndef QUIRE_KERNELS_SIMT_EMULATED_RUNTIME_H_
#define QUIRE_KERNELS_SIMT_EMULATED_RUNTIME_H_

#include <memory>

#include "kernels/simt/device.h"
#include "kernels/simt/emulator.h"

namespace quire::kernels::emulated {

struct DeviceOptions {
  EmulatorOptions emulator;
  uint64_t late_seed = 0;  // 0: everything runs as soon as it is queued
};

std::unique_ptr<Device> MakeDevice(const DeviceOptions& options);

// The CUDA backend on it.
Result<std::unique_ptr<DeviceBackend>> MakeBackend(const DeviceOptions& options);

}  // namespace quire::kernels::emulated

#endif  // QUIRE_KERNELS_SIMT_EMULATED_RUNTIME_H_
