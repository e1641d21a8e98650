// Claims: blocks promised to sequences and not yet taken (P10).
#include <algorithm>
#include <map>

#include "cache_service/engine/engine_core.h"

namespace quire {

// To each sequence of the claim that the begin makes: in window groups what window, slack and one
// chunk, the prompt, hold at once.
uint64_t EngineCore::BlocksPromised(const BeginOp& op) const {
  uint64_t blocks = 0;
  for (const GroupSpec& group : options_.groups) {
    blocks += MostBlocksHeld(group, op.reserve_tokens, op.tokens.size(), options_.block_tokens,
                             options_.window_slack_tokens);
  }
  return blocks;
}

// What a member may still take of the claim's promise to each sequence.
uint64_t EngineCore::ShareOf(const Sequence& member) const {
  uint64_t held = 0;
  for (uint32_t group = 0; group < groups(); ++group) {
    held += member.tables[group].size() - member.window_start[group];
  }
  const uint64_t promised = member.claim->blocks_per_sequence;
  return promised - std::min(promised, held);
}

// What the claim's sequences may still take: the rest of each member, copies of shared tails, and
// forks to come.
uint64_t EngineCore::WantedBy(const Claim& claim) const {
  if (claim.members.empty()) return 0;
  uint64_t wanted = claim.copies_due + claim.forks_left * claim.blocks_per_sequence;
  for (const Sequence* member : claim.members) wanted += ShareOf(*member);
  return wanted;
}

// `taken`: blocks that were taken on the promise, copies that replace a block too. What a member
// let go is promised again as far as it came free, for others may hold it; the rest is owed.
void EngineCore::UpdateClaim(const std::shared_ptr<Claim>& claim, uint64_t taken) {
  const uint64_t wanted = WantedBy(*claim);
  const WorkerState& worker = *workers_[claim->worker];
  uint64_t promised = claim->remaining - std::min(claim->remaining, taken);
  if (worker_ == &worker) {
    promised = std::max(promised, Headroom(worker, claim->remaining));
    while (promised < wanted && GiveUpKept(worker.slot)) {
      promised = std::max(promised, Headroom(worker, claim->remaining));
    }
  }
  SetClaim(*claim, wanted, std::min(wanted, promised));
}

// A promise is worth more than a hit: takes the content out of the first idle block that only the
// window of a held leaf keeps, and that `worker` may have (kManyWorkers: somebody). False if there
// is none.
bool EngineCore::GiveUpKept(WorkerSlot worker) {
  BlockId first = kNoBlock;
  for (const BlockId block : pool_.kept()) {
    const Block& record = pool_.Get(block);
    if (!IsWindow(record.group)) continue;
    const bool open = record.fence_worker == kNoWorker || worker == kManyWorkers;
    if (!open && record.fence_worker != worker) continue;
    if (first == kNoBlock || EvictionOrder::Before(record, pool_.Get(first))) first = block;
  }
  if (first == kNoBlock) return false;
  CountEviction(pool_.Get(first), EvictionReason::kCapacity);
  EvictBlock(first);
  pool_.Mut(first).Set(kPendingFlag | kGuardedFlag, false);
  pool_.Settle(first);
  return true;
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
  uint64_t available = AvailableToAny();
  if (claimed_ <= available && owed_ == 0) return;
  while (claimed_ > available && GiveUpKept(kManyWorkers)) available = AvailableToAny();
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
    const WorkerState& worker = *workers_[claim->worker];
    uint64_t room = Headroom(worker, claim->remaining);
    while (room < claim->wanted && GiveUpKept(worker.slot))
      room = Headroom(worker, claim->remaining);
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
