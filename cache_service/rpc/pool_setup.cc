#include "cache_service/rpc/pool_setup.h"

namespace quire {

ShmOptions MemoryOf(const PoolSetup& setup) {
  ShmOptions options = setup.memory;
  options.pool_name = setup.pool.engine.pool_name;
  options.epoch = setup.pool.engine.epoch;
  options.ranks = setup.pool.ranks;
  options.bytes = setup.pool.device_memory_bytes;
  options.max_leases = setup.pool.engine.max_leases;
  return options;
}

std::vector<ShmOptions> MemoriesOf(std::span<const PoolSetup> pools) {
  std::vector<ShmOptions> memories;
  for (const PoolSetup& setup : pools) {
    if (setup.pool.engine.memory == PoolMemoryKind::kShared) memories.push_back(MemoryOf(setup));
  }
  return memories;
}

}  // namespace quire
