// The splitmix64 finaliser, shared by the layout id and the content checksum.
#ifndef QUIRE_KERNELS_HASH_H_
#define QUIRE_KERNELS_HASH_H_

#include <cstdint>

#include "kernels/host_device.h"

namespace quire::kernels {

constexpr uint64_t kGolden = 0x9E3779B97F4A7C15u;

QUIRE_HOST_DEVICE constexpr uint64_t Mix64(uint64_t z) {
  z ^= z >> 30;
  z *= 0xBF58476D1CE4E5B9u;
  z ^= z >> 27;
  z *= 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

}  // namespace quire::kernels

#endif  // QUIRE_KERNELS_HASH_H_
