#include "cache_service/memory/lease_slots.h"

#include "cache_service/base/error.h"

namespace quire {

LeaseSlots::LeaseSlots(uint64_t count) : count_(count) {
  free_.reserve(count);
  for (uint64_t slot = count; slot > 0; --slot) free_.push_back(slot - 1);
}

absl::StatusOr<LeaseSlots::Grant> LeaseSlots::Take(uint64_t lease_number) {
  if (const auto it = slot_of_.find(lease_number); it != slot_of_.end()) return Grant{it->second};
  if (ended_before_grant_.erase(lease_number) > 0) return Grant{.slot = 0, .revoked = true};
  if (free_.empty()) {
    refused_.insert(lease_number);
    return ToStatus(LimitExceeded("leases", "every lease word is in use", count_ + 1, count_));
  }
  const uint64_t slot = free_.back();
  free_.pop_back();
  slot_of_.emplace(lease_number, slot);
  return Grant{slot};
}

std::optional<uint64_t> LeaseSlots::Release(uint64_t lease_number) {
  const auto it = slot_of_.find(lease_number);
  if (it == slot_of_.end()) {
    if (refused_.erase(lease_number) == 0) ended_before_grant_.insert(lease_number);
    return std::nullopt;
  }
  const uint64_t slot = it->second;
  slot_of_.erase(it);
  free_.push_back(slot);
  return slot;
}

}  // namespace quire
