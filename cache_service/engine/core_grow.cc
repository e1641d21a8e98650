// Growth: extend, look-ahead, and who may take a block (P5, P9, P10).
#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "cache_service/engine/block_pool_chains.h"
#include "cache_service/engine/engine_core.h"
#include "cache_service/engine/fault.h"

namespace quire {
namespace {

// A block that counts for the worker, though something depends on it.
BlockId FirstParked(const BlockPool& pool, WorkerSlot worker) {
  for (uint32_t index = 0; index < pool.size(); ++index) {
    const BlockId block{index};
    if (pool.Get(block).place == Place::kParked && pool.AvailableTo(block, worker)) return block;
  }
  return kNoBlock;
}

}  // namespace

Error EngineCore::Extend(const ExtendOp& op) {
  Error error;
  Sequence* sequence = FindAt(op.sequence, op.start_length, error);
  if (sequence == nullptr) return error;
  Touch(*sequence);
  const uint32_t slots = std::min(op.slots, options_.max_sequence_tokens);
  if (slots > sequence->reserved) {
    if (Error grown = Grow(*sequence, slots, true); !grown.ok()) return grown;
  }
  if (sequence->length < sequence->given) {
    sequence->length = std::max(sequence->length, std::min(sequence->given, slots));
  }
  return {};
}

// --- Slots ---

// A partly filled last block that others use, or that was sealed, is copied before it is written.
bool EngineCore::TailNeedsCopy(const Sequence& sequence, uint32_t group) const {
  if (sequence.length % options_.block_tokens == 0) return false;
  const uint32_t index = sequence.length / options_.block_tokens;
  const Block& tail = pool_.Get(sequence.tables[group][index]);
  return tail.table_refs > 1 || tail.Has(kSealedFlag);
}

Error EngineCore::Grow(Sequence& sequence, uint32_t slots, bool wait) {
  // The mere end of a block that was made the sequence's own when the first slots ahead were held.
  if (sequence.reserved > sequence.length && BlocksFor(slots) == BlocksFor(sequence.reserved) &&
      !Injected(Fault::kForkDropsAhead)) {
    sequence.reserved = std::max(sequence.reserved, slots);
    return {};
  }
  const uint32_t block_count = BlocksFor(slots);
  const auto held = static_cast<uint32_t>(sequence.tables[0].size());
  uint32_t copies = 0;
  for (uint32_t group = 0; group < groups(); ++group) copies += TailNeedsCopy(sequence, group);
  const uint64_t needed = uint64_t{std::max(block_count, held) - held} * groups() + copies;
  if (needed > 0) {
    if (copies > 0 && sequence.length > sequence.length_before_step) {
      return MakeError(Reason::kNotComputed, "the shared last block has tokens of this step",
                       {{"length", sequence.length}, {"computed", sequence.length_before_step}});
    }
    if (worker_->table_entries + needed > options_.max_table_entries_per_worker) {
      return MakeError(Reason::kLimitExceeded, "too many table entries of this worker",
                       {{"limit", options_.max_table_entries_per_worker}});
    }
    // It may have come free meanwhile.
    if (sequence.claim != nullptr) UpdateClaim(sequence.claim, 0);
    const bool inside = sequence.claim != nullptr && slots <= sequence.claim->reserve_tokens;
    // Beyond window and chunk it takes nothing from the promise to its forks.
    const uint64_t promised =
        inside ? std::min({needed, copies + ShareOf(sequence), sequence.claim->remaining}) : 0;
    const bool claimed = promised == needed;
    const Sequence* waiter = claimed ? nullptr : OldestWaiter(sequence.serial);
    // The rest of its claim may wait for fences of others.
    if (waiter != nullptr ||
        needed > Headroom(*worker_, claimed ? sequence.claim->remaining : promised)) {
      ++counters_.shortages;
      if (wait) AddWaiter(sequence);
      return ShortageError({.needed = needed,
                            .own_claim = sequence.claim ? sequence.claim->remaining : 0,
                            .waiter = waiter});
    }
    if (wait) RemoveWaiter(sequence);
    if (copies > 0) CopyTail(sequence, sequence.length % options_.block_tokens);
    for (uint32_t i = held; i < block_count; ++i) {
      for (uint32_t group = 0; group < groups(); ++group) {
        const BlockId block = TakeBlock(group);
        AddEntry(sequence, group, block);
        AppendEntry(sequence, group, i, block);
      }
    }
    if (sequence.claim) UpdateClaim(sequence.claim, promised);
  }
  sequence.reserved = std::max(sequence.reserved, slots);
  return {};
}

void EngineCore::CopyTail(Sequence& sequence, uint32_t tokens) {
  const uint32_t index = sequence.length / options_.block_tokens;
  const bool shared = pool_.Get(sequence.tables[0][index]).table_refs > 1;
  for (uint32_t group = 0; group < groups(); ++group) {
    if (!TailNeedsCopy(sequence, group)) continue;
    const BlockId source = sequence.tables[group][index];
    Hold(source);
    const BlockId destination = TakeBlock(group);
    sequence.tables[group][index] = destination;
    Ref(destination, worker_->slot);
    Unref(source, worker_->slot, step_);
    AppendEntry(sequence, group, index, destination);
    Log(source, LogKind::kCopied);
    Hold(destination);
    Log(destination, LogKind::kCopied);
    EmitCopy(group, source, destination, tokens);
  }
  if (sequence.claim && shared && sequence.claim->copies_due > 0) {
    journal_.Save(sequence.claim->copies_due);
    --sequence.claim->copies_due;
  }
}

void EngineCore::EmitCopy(uint32_t group, BlockId source, BlockId destination, uint32_t tokens) {
  out_->copies.push_back({group, source, destination, tokens});
  ++counters_.copies;
  counters_.copied_tokens += tokens;
}

void EngineCore::AddEntry(Sequence& sequence, uint32_t group, BlockId block) {
  sequence.tables[group].push_back(block);
  journal_.Save(worker_->table_entries);
  ++worker_->table_entries;
  Ref(block, worker_->slot);
}

// --- Who may take a block ---

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

BlockId EngineCore::TakeBlock(uint32_t group) {
  const uint64_t open = pool_.OpenFree() + pool_.OpenEvictable();
  const bool only_own = open <= ClaimedBeside(*worker_);
  BlockId block = pool_.TakeFree(worker_->slot, only_own);
  if (block == kNoBlock) block = EvictOne(only_own);
  // Only if a promise to others moved within the operation.
  if (block == kNoBlock) block = pool_.TakeFree(worker_->slot, false);
  // What counts as evictable can be taken, as the checker proves. Were a rule broken, a hit would
  // be a lesser loss than the process.
  if (block == kNoBlock) {
    block = FirstParked(pool_, worker_->slot);
    CountEviction(pool_.Get(block), EvictionReason::kCapacity);
    EvictBlock(block);
    pool_.TakeEvicted(block);
  }
  pool_.Mut(block).group = static_cast<uint8_t>(group);
  ++counters_.blocks_allocated;
  return block;
}

// The common victims of a begin, one after another, as EvictPlainTip and TakeVictim would; stops
// before one that needs more than that. Blocks that became idle together are counted together.
size_t EngineCore::TakePlainVictims(std::span<BlockId> taken) {
  if (pool_.parked() > 0) return 0;
  Block alike{};
  uint64_t count = 0;
  const auto flush = [&] {
    if (count > 0) CountEviction(alike, EvictionReason::kCapacity, count);
    count = 0;
  };
  const auto remove = [&](BlockId victim, const Block& block) {
    tree_.PrefetchTop(block.node);
    if (!tree_.RemovePlainTip(block.node)) return false;
    if (block.allocated_ms != alike.allocated_ms || block.idle_since_ms != alike.idle_since_ms ||
        block.priority != alike.priority) {
      flush();
      alike = block;
    }
    ++count;
    ForgetChecksum(victim);
    return true;
  };
  const size_t evicted = pool_.TakeVictimRun(
      worker_->slot, taken, [&](NodeId node) { tree_.PrefetchTip(node); }, remove);
  flush();
  return evicted;
}

void EngineCore::TakeVictims(std::span<BlockId> taken) {
  for (size_t at = 0; (at += TakePlainVictims(taken.subspan(at))) < taken.size(); ++at) {
    taken[at] = EvictOne(false);
    pool_.TakeVictim(taken[at], worker_->slot);
  }
}

// The common victim: a leaf, open to all, in a pool with one group. What follows is what EvictBlock
// and TakeEvicted do in this case.
bool EngineCore::EvictPlainTip(BlockId victim) {
  const Block& block = pool_.Get(victim);
  if (!pool_.plain() || pool_.parked() > 0 || block.Has(kTimedFlag | kDeadFlag)) return false;
  if (!tree_.RemovePlainTip(block.node)) return false;
  CountEviction(block, EvictionReason::kCapacity);
  ForgetChecksum(victim);
  pool_.TakePlainVictim(victim);
  return true;
}

// The first block of the eviction order that nothing resident needs, or kNoBlock.
BlockId EngineCore::NextVictim(bool only_own) {
  BlockId victim = pool_.FirstVictim(worker_->slot, only_own);
  while (victim != kNoBlock && IsNeeded(victim)) {
    pool_.Park(victim);
    victim = pool_.FirstVictim(worker_->slot, only_own);
  }
  return victim;
}

BlockId EngineCore::EvictOne(bool only_own) {
  const BlockId first = pool_.FirstVictim(worker_->slot, only_own);
  if (first != kNoBlock && EvictPlainTip(first)) return first;
  BlockId victim = NextVictim(only_own);
  // The worker's own blocks may lie above blocks that are promised to others: these become free.
  while (victim == kNoBlock && FreeOpenVictim()) victim = NextVictim(only_own);
  if (victim == kNoBlock) return victim;
  CountEviction(pool_.Get(victim), pool_.Get(victim).Has(kDeadFlag) ? EvictionReason::kDead
                                                                    : EvictionReason::kCapacity);
  EvictBlock(victim);
  pool_.TakeEvicted(victim);
  return victim;
}

// Takes the content out of one block that is open to all; false if there is none.
bool EngineCore::FreeOpenVictim() {
  const BlockId victim = NextVictim(false);
  if (victim == kNoBlock) return false;
  if (pool_.Get(victim).Has(kDeadFlag)) {
    CountEviction(pool_.Get(victim), EvictionReason::kDead);
    pool_.ForgetDead(victim);
  } else {
    CountEviction(pool_.Get(victim), EvictionReason::kCapacity);
    EvictBlock(victim);
    pool_.Settle(victim);
  }
  return true;
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
