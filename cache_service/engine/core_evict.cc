// Blocks for tables: free ones, and victims in the eviction order (E1, P10).
#include "cache_service/engine/block_pool_chains.h"
#include "cache_service/engine/engine_core.h"

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
      worker_->slot, taken, [&](NodeId node) { tree_.PrefetchTip(node); },
      [&](NodeId node) { tree_.PrefetchTop(node); }, remove);
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

}  // namespace quire
