// What one pool of a server is made of: its engine and its memory.
#ifndef QUIRE_CACHE_SERVICE_RPC_POOL_SETUP_H_
#define QUIRE_CACHE_SERVICE_RPC_POOL_SETUP_H_

#include <span>
#include <vector>

#include "cache_service/memory/shm_space.h"
#include "cache_service/rpc/pool_plan.h"

namespace quire {

struct PoolSetup {
  PoolOptions pool;
  // Name, epoch, ranks and bytes come from `pool`; unused with worker memory.
  ShmOptions memory;
};

// The memory of a pool of shared memory, complete.
ShmOptions MemoryOf(const PoolSetup& setup);
// Of all pools that have shared memory.
std::vector<ShmOptions> MemoriesOf(std::span<const PoolSetup> pools);

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_RPC_POOL_SETUP_H_
