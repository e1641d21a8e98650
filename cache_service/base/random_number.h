// Numbers that nobody can foresee.
#ifndef QUIRE_CACHE_SERVICE_BASE_RANDOM_NUMBER_H_
#define QUIRE_CACHE_SERVICE_BASE_RANDOM_NUMBER_H_

#include <cstdint>
#include <random>

namespace quire {

// From the system's source of random numbers.
inline uint64_t RandomNumber() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_BASE_RANDOM_NUMBER_H_
