// Which word of the control page belongs to which lease; slots are used again.
#ifndef QUIRE_CACHE_SERVICE_MEMORY_LEASE_SLOTS_H_
#define QUIRE_CACHE_SERVICE_MEMORY_LEASE_SLOTS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"

namespace quire {

// Not thread-safe.
class LeaseSlots {
 public:
  explicit LeaseSlots(uint64_t count);

  struct Grant {
    uint64_t slot = 0;
    // The lease had ended before it was granted; it keeps no slot.
    bool revoked = false;
  };

  // The lease's slot, a new one if it has none. Errors: LIMIT_EXCEEDED; the lease is then released
  // without a slot.
  absl::StatusOr<Grant> Take(uint64_t lease_number);
  // Frees the lease's slot and returns it; nothing if it has not been taken yet.
  std::optional<uint64_t> Release(uint64_t lease_number);

 private:
  const uint64_t count_;
  std::vector<uint64_t> free_;
  absl::flat_hash_map<uint64_t, uint64_t> slot_of_;
  // A lease may end on one thread while another is about to grant its word.
  absl::flat_hash_set<uint64_t> ended_before_grant_;
  absl::flat_hash_set<uint64_t> refused_;
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_MEMORY_LEASE_SLOTS_H_
