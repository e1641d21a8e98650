// Claims: blocks promised to sequences and not yet taken (P10).
#include <algorithm>
#include <map>

#include "cache_service/engine/engine_core.h"

namespace quire {

// What the claim's sequences may still take: the rest of each member, copies of shared tails, and
// forks to come.
uint64_t EngineCore::WantedBy(const Claim& claim) const {
  if (claim.members.empty()) return 0;
  uint64_t wanted = claim.copies_due + claim.forks_left * claim.blocks_per_sequence;
  for (const Sequence* member : claim.members) {
    uint64_t held = 0;
    for (uint32_t group = 0; group < groups(); ++group) {
      held += member->tables[group].size() - member->window_start[group];
    }
    wanted += claim.blocks_per_sequence - std::min(claim.blocks_per_sequence, held);
  }
  return wanted;
}

// `taken`: blocks that were taken on the promise, copies that replace a block too. What a member
// let go is promised again as far as it came free, for others may hold it; the rest is owed.
void EngineCore::UpdateClaim(const std::shared_ptr<Claim>& claim, uint64_t taken) {
  const uint64_t wanted = WantedBy(*claim);
  const WorkerState& worker = *workers_[claim->worker];
  uint64_t promised = claim->remaining - std::min(claim->remaining, taken);
  if (worker_ == &worker) promised = std::max(promised, Headroom(worker, claim.get()));
  SetClaim(*claim, wanted, std::min(wanted, promised));
}

void EngineCore::SetClaim(Claim& claim, uint64_t wanted, uint64_t remaining) {
  WorkerState& worker = *workers_[claim.worker];
  journal_.Save(claimed_);
  journal_.Save(owed_);
  journal_.Save(worker.claimed);
  journal_.Save(claim.wanted);
  journal_.Save(claim.remaining);
  claimed_ += remaining - claim.remaining;
  worker.claimed += remaining - claim.remaining;
  owed_ += (wanted - remaining) - (claim.wanted - claim.remaining);
  claim.wanted = wanted;
  claim.remaining = remaining;
}

// Blocks may go out of everybody's reach for a while: what a copy holds, what a commit found lying
// idle. Then the youngest claims promise less. What comes free is promised again, to the oldest
// first, before anybody takes it.
void EngineCore::FitClaims() {
  if (claimed_ == 0 && owed_ == 0) return;
  const uint64_t available = AvailableToAny();
  if (claimed_ <= available && owed_ == 0) return;
  std::map<uint64_t, Claim*> claims;
  for (const auto& worker : workers_) {
    if (worker == nullptr) continue;
    for (const auto& [handle, sequence] : worker->sequences) {
      Claim* claim = sequence->claim.get();
      if (claim != nullptr) claims[claim->members.front()->serial] = claim;
    }
  }
  for (auto entry = claims.rbegin(); entry != claims.rend() && claimed_ > available; ++entry) {
    Claim& claim = *entry->second;
    const uint64_t less = std::min(claimed_ - available, claim.remaining);
    SetClaim(claim, claim.wanted, claim.remaining - less);
  }
  for (const auto& [serial, claim] : claims) {
    if (claim->remaining == claim->wanted) continue;
    const uint64_t room = Headroom(*workers_[claim->worker], claim);
    if (room > claim->remaining) SetClaim(*claim, claim->wanted, std::min(claim->wanted, room));
  }
}

void EngineCore::LeaveClaim(Sequence& sequence) {
  if (sequence.claim == nullptr) return;
  const std::shared_ptr<Claim> claim = sequence.claim;
  if (journal_.active()) {
    journal_.OnRollback([claim, members = claim->members] { claim->members = members; });
  }
  std::erase(claim->members, &sequence);
  UpdateClaim(claim, 0);
}

}  // namespace quire
