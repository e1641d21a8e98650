// Who may take a block: what claims and older waiters leave (P9, P10).
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cache_service/engine/engine_core.h"
#include "cache_service/engine/fault.h"

namespace quire {

// Claims of other workers that blocks open to all must cover: what their own releases fence serves
// only themselves.
uint64_t EngineCore::ClaimedBeside(const WorkerState& worker) const {
  if (claimed_ == worker.claimed) return 0;
  uint64_t claimed = 0;
  for (const auto& other : workers_) {
    if (other == nullptr || other.get() == &worker) continue;
    const uint64_t own = pool_.OwnFree(other->slot) + pool_.OwnEvictable(other->slot);
    if (other->claimed > own) claimed += other->claimed - own;
  }
  return claimed;
}

// Blocks open to all that no other worker's claims need: the most that the current worker may hit.
uint64_t EngineCore::OpenRoom(const WorkerState& worker) const {
  const uint64_t open = pool_.OpenFree() + pool_.OpenEvictable();
  return open - std::min(open, ClaimedBeside(worker));
}

// Free and evictable blocks, whoever's releases fence them.
uint64_t EngineCore::AvailableToAny() const {
  uint64_t available = pool_.OpenFree() + pool_.OpenEvictable();
  for (const auto& worker : workers_) {
    if (worker == nullptr) continue;
    available += pool_.OwnFree(worker->slot) + pool_.OwnEvictable(worker->slot);
  }
  return available;
}

// Blocks that the worker may take for whom `promised` blocks are promised: what is available to it,
// less what is promised to others.
uint64_t EngineCore::Headroom(const WorkerState& worker, uint64_t promised) const {
  const uint64_t own = pool_.OwnFree(worker.slot) + pool_.OwnEvictable(worker.slot);
  if (Injected(Fault::kClaimNotCounted)) return pool_.OpenFree() + pool_.OpenEvictable() + own;
  const uint64_t usable = own + OpenRoom(worker);
  const uint64_t room = usable - std::min(usable, worker.claimed - promised);
  if (claimed_ == worker.claimed) return room;
  // A promise may wait for a fence of this worker: its own blocks, too, are below the sum then.
  const uint64_t available = AvailableToAny();
  return std::min(room, available - std::min(available, claimed_ - promised));
}

// The oldest sequence that waits for a block and began before `before_serial`.
const Sequence* EngineCore::OldestWaiter(uint64_t before_serial) {
  while (!waiters_.empty()) {
    const auto oldest = waiters_.begin();
    if (now_ - oldest->second.last_refused <= 2 * options_.retry_interval) {
      return oldest->first < before_serial ? oldest->second.sequence : nullptr;
    }
    RemoveWaiter(*oldest->second.sequence);
  }
  return nullptr;
}

void EngineCore::AddWaiter(Sequence& sequence) {
  if (journal_.active()) {
    journal_.OnRollback([this, copy = waiters_] { waiters_ = copy; });
  }
  waiters_[sequence.serial] = {&sequence, now_};
}

void EngineCore::RemoveWaiter(const Sequence& sequence) {
  if (waiters_.empty() || !waiters_.contains(sequence.serial)) return;
  if (journal_.active()) {
    journal_.OnRollback([this, copy = waiters_] { waiters_ = copy; });
  }
  waiters_.erase(sequence.serial);
}

Error EngineCore::ShortageError(const Shortage& shortage) const {
  const PoolCounts counts = CountsFor(*worker_);
  const uint64_t evictable =
      counts.evictable - std::min<uint64_t>(counts.evictable, shortage.idle_hits);
  const uint64_t claimed = claimed_ - shortage.own_claim;
  Error error = MakeError(
      Reason::kPoolExhausted,
      absl::StrCat("needs ", shortage.needed, " blocks; free ", counts.free, ", evictable ",
                   evictable, ", claimed by others ", claimed, ", held by the caller ",
                   pool_.HeldBy(worker_->slot), ", fenced ", counts.fenced),
      {{"needed", shortage.needed},
       {"free", counts.free},
       {"evictable", evictable},
       {"claimed_by_others", claimed},
       {"held_by_caller", pool_.HeldBy(worker_->slot)},
       {"fenced", counts.fenced},
       {"retry_after_ms",
        std::chrono::duration_cast<std::chrono::milliseconds>(options_.retry_interval).count()}});
  if (shortage.is_begin) error.details.emplace_back("reusable_blocks", shortage.hit_blocks);
  if (shortage.waiter != nullptr) {
    error.details.emplace_back("waiting_worker", workers_[shortage.waiter->worker]->name);
    error.details.emplace_back("waiting_sequence", shortage.waiter->handle);
  }
  return error;
}

}  // namespace quire
