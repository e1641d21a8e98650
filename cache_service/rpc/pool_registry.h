// The server's pools: by name, and by the lease of a call.
#ifndef QUIRE_CACHE_SERVICE_RPC_POOL_REGISTRY_H_
#define QUIRE_CACHE_SERVICE_RPC_POOL_REGISTRY_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cache_service/rpc/pool.h"

namespace quire {

// A pool together with its engine, which is there.
struct LeasedPool {
  Pool* pool = nullptr;
  CacheEngine* engine = nullptr;
  LeaseId lease;
};

// Immutable after construction, hence thread-safe.
class PoolRegistry {
 public:
  // Ordered by name, at least one.
  explicit PoolRegistry(std::vector<std::unique_ptr<Pool>> pools);

  const std::vector<std::unique_ptr<Pool>>& pools() const { return pools_; }

  // An empty name means the only pool. Errors: POOL_NOT_FOUND, INVALID_ARGUMENT if there are
  // several.
  absl::StatusOr<Pool*> Find(const std::string& name) const;

  // Leases on the wire start with the number of their pool.
  std::string WireLease(const Pool& pool, const LeaseId& lease) const;
  // Errors: EPOCH_MISMATCH for another life of the server, LEASE_EXPIRED for what cannot be a lease
  // of this one.
  absl::StatusOr<LeasedPool> FindByLease(const std::string& wire_lease, Epoch epoch) const;

  // One life of the server has one epoch, whatever the pool.
  Epoch epoch() const { return pools_.front()->options().engine.epoch; }

  std::vector<PoolSnapshot> Snapshots() const;
  uint64_t LiveSequences() const;

 private:
  const std::vector<std::unique_ptr<Pool>> pools_;
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_RPC_POOL_REGISTRY_H_
