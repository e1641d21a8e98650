// Promises of blocks.
#include "absl/strings/str_cat.h"
#include "cache_service/engine/invariants.h"

namespace quire {

void InvariantChecker::CheckClaims() {
  uint64_t claimed = 0;
  uint64_t available = core_.pool_.OpenFree() + core_.pool_.OpenEvictable();
  for (const auto& worker : core_.workers_) {
    if (worker == nullptr) continue;
    claimed += worker->claimed;
    available += core_.pool_.OwnFree(worker->slot) + core_.pool_.OwnEvictable(worker->slot);
  }
  if (claimed != core_.claimed_ || claimed > available) {
    Report(3, std::nullopt, "claims",
           absl::StrCat("claims of ", claimed, " blocks (counted ", core_.claimed_, ") exceed the ",
                        available, " free and evictable ones"));
  }
  CheckOwed();
}

void InvariantChecker::CheckOwed() {
  uint64_t remaining = 0;
  uint64_t owed = 0;
  for (const auto& worker : core_.workers_) {
    if (worker == nullptr) continue;
    for (const auto& [handle, sequence] : worker->sequences) {
      const Claim* claim = sequence->claim.get();
      if (claim == nullptr || claim->members.front() != sequence.get()) continue;
      remaining += claim->remaining;
      owed += claim->wanted - claim->remaining;
      if (claim->remaining < claim->wanted) CheckDebt(*worker, *claim);
    }
  }
  if (remaining == core_.claimed_ && owed == core_.owed_) return;
  Report(3, std::nullopt, "claims",
         absl::StrCat("claims promise ", remaining, " blocks and are owed ", owed, ", counted are ",
                      core_.claimed_, " and ", core_.owed_));
}

// A claim is owed nothing that its worker could have now.
void InvariantChecker::CheckDebt(const WorkerState& worker, const Claim& claim) {
  const uint64_t room = core_.Headroom(worker, claim.remaining);
  if (room > claim.remaining) {
    Report(3, std::nullopt, worker.name,
           absl::StrCat("a claim promises ", claim.remaining, " of ", claim.wanted,
                        " blocks, there is room for ", room));
  }
  for (const BlockId block : core_.pool_.kept()) {
    const Block& record = core_.pool_.Get(block);
    const bool fits = record.fence_worker == kNoWorker || record.fence_worker == worker.slot;
    if (!core_.IsWindow(record.group) || !fits) continue;
    Report(3, block, worker.name, "a window keeps what a claim is owed");
  }
}

}  // namespace quire
