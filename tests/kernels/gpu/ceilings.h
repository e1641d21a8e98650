// What the device can do at best with its memory, in bytes per second.
#ifndef QUIRE_TESTS_KERNELS_GPU_CEILINGS_H_
#define QUIRE_TESTS_KERNELS_GPU_CEILINGS_H_

#include <cstddef>
#include <string>

namespace quire::kernels::gpu {

struct Ceilings {
  std::string device;  // its name
  double read = 0;     // a kernel that only reads
  double copy = 0;     // read and write, by the driver's copy
  std::string error;   // "" if measured
};

// Reads the `bytes` at `memory` and copies one half over the other, several times each.
Ceilings MeasureCeilings(std::byte* memory, size_t bytes);

}  // namespace quire::kernels::gpu

#endif  // QUIRE_TESTS_KERNELS_GPU_CEILINGS_H_
