// Memory of a pool as the server sees it: regions that workers map, words that say whether a lease
// is good, and evidence of who still maps a region.
#ifndef QUIRE_CACHE_SERVICE_MEMORY_POOL_MEMORY_H_
#define QUIRE_CACHE_SERVICE_MEMORY_POOL_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cache_service/engine/engine_observer.h"

namespace quire {

// What a worker needs in order to map the region of one rank under its lease.
struct MemoryGrant {
  uint32_t rank = 0;
  std::string path;
  uint64_t blocks_offset = 0;
  uint64_t bytes = 0;
  uint64_t lease_word_offset = 0;
  uint64_t lease_word = 0;
  uint64_t lock_offset = 0;
};

// How the bytes of all regions are divided, once that is known.
struct BlockGeometry {
  uint64_t layout_id = 0;
  uint32_t layout_version = 0;
  uint64_t block_bytes = 0;
  uint64_t block_count = 0;
};

// Thread-safe.
class PoolMemory : public MappingEvidence {
 public:
  // Errors: INVARIANT_BROKEN if it cannot be written.
  virtual absl::Status FixGeometry(const BlockGeometry& geometry) = 0;

  // One grant per rank; the same ones again for a lease that has them. A lease that ended before it
  // was granted gets words that read "revoked". Errors: LIMIT_EXCEEDED if every word is in use,
  // those of Check.
  virtual absl::StatusOr<std::vector<MemoryGrant>> Grant(uint64_t lease_number) = 0;

  // The lease's word reads "revoked" from now on. Every lease that ends is revoked once, and every
  // lease is granted once, in either order.
  virtual void Revoke(uint64_t lease_number) = 0;

  // Whether every region is as it was made. Errors: INVARIANT_BROKEN naming a region that somebody
  // cut short or removed.
  virtual absl::Status Check() const = 0;

  // Bytes of a region, counted from block 0.
  virtual absl::Status Read(uint32_t rank, uint64_t offset, std::span<std::byte> out) const = 0;

  virtual uint32_t ranks() const = 0;
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_MEMORY_POOL_MEMORY_H_
