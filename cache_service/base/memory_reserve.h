// Memory kept back, so that a change that has begun need not fail half way.
#ifndef QUIRE_CACHE_SERVICE_BASE_MEMORY_RESERVE_H_
#define QUIRE_CACHE_SERVICE_BASE_MEMORY_RESERVE_H_

#include <cstddef>

namespace quire {

// Keeps so many bytes of address space for this process; when `new` fails, they are given up for it
// once. To be called once, before there are threads. False: there is not as much.
bool KeepMemoryReserve(size_t bytes);

// False if the reserve was given up and cannot be had again yet: begin nothing new. True if none
// was ever kept. Thread-safe.
bool HasMemoryReserve();

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_BASE_MEMORY_RESERVE_H_
