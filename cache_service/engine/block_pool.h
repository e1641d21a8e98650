// The blocks of one pool: who holds each, what fences it, which list offers it.
//
// The pool knows states, holds and order; it knows nothing of content (PrefixTree) or sequences.
// Settle is the one place that derives a block's state and list from its record, so the two never
// disagree. Not thread-safe; CacheEngine locks.
#ifndef QUIRE_CACHE_SERVICE_ENGINE_BLOCK_POOL_H_
#define QUIRE_CACHE_SERVICE_ENGINE_BLOCK_POOL_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/base/attributes.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "cache_service/engine/block.h"
#include "cache_service/engine/eviction_order.h"
#include "cache_service/engine/journal.h"
#include "cache_service/engine/retention.h"
#include "cache_service/engine/retention_timers.h"
#include "cache_service/engine/types.h"
#include "cache_service/engine/zeroed_array.h"

namespace quire {

// Told when a block in the tree becomes one that cannot be given away, or stops being one.
class BlockingListener {
 public:
  virtual ~BlockingListener() = default;
  virtual void OnBlockingChanged(const Block& block, bool blocking) = 0;
  // Told when a block in the tree becomes held, fenced or pending, or is none of these any more,
  // and when this begins or ends to keep it from everybody.
  virtual void OnClosedChanged(const Block& block) = 0;
};

class BlockPool {
 public:
  // With `one_group` there is one layer group, without a window.
  BlockPool(uint32_t block_count, uint32_t groups, bool one_group, Journal* journal,
            BlockingListener* listener);

  uint32_t size() const { return size_; }

  // True if chains of blocks may be handled at once (block_pool_chains.h).
  bool plain() const { return one_group_ && !journal_->active(); }

  const Block& Get(BlockId block) const { return blocks_[Index(block)]; }

  // Asks the processor for the record; harmless if there is none. Inlined by order: g++ drops calls
  // of functions that do nothing but this.
  ABSL_ATTRIBUTE_ALWAYS_INLINE void Prefetch(BlockId block) const {
    __builtin_prefetch(blocks_.data() + Index(block), 1);
  }

  // The same for the next `count` blocks that were never used.
  ABSL_ATTRIBUTE_ALWAYS_INLINE void PrefetchFresh(size_t count) const {
    for (size_t i = fresh_; i < std::min<size_t>(fresh_ + count, size_); ++i) {
      __builtin_prefetch(&blocks_[i], 1);
    }
  }

  // For changes to fields; call Settle afterwards.
  Block& Mut(BlockId block) {
    journal_->Save(blocks_[Index(block)]);
    return blocks_[Index(block)];
  }

  // The present, for last uses and timers; set once per public call.
  void SetNow(TimePoint now, uint32_t now_ms);

  uint32_t now_ms() const { return now_ms_; }

  void AddWorker(WorkerSlot worker);
  // Nothing may name the worker any more.
  void RemoveWorker(WorkerSlot worker);

  // --- Taking blocks ---
  // A free block that `worker` may have, its record reset; kNoBlock if there is none. Blocks that
  // only the worker's own releases fence go first. With only_own, only those.
  BlockId TakeFree(WorkerSlot worker, bool only_own);
  // First block of the eviction order that `worker` may have; kNoBlock if there is none.
  BlockId FirstVictim(WorkerSlot worker, bool only_own) const;
  // Takes a listed block that left the tree; its record is reset.
  void TakeEvicted(BlockId block);
  // As TakeEvicted, where no timer runs and no journal.
  void TakePlainVictim(BlockId block);
  // Something in the tree needs the block first: out of the order until Unpark.
  void Park(BlockId block);
  void Unpark(BlockId block);

  // Blocks that are out of the order.
  uint64_t parked() const { return parked_; }

  // Free blocks of group 0 into a table of the worker, as TakeFree with only_own false and
  // AddTableRef. There must be as many: at most OpenFree() + OwnFree(worker). Not while a journal
  // runs.
  void TakeFreeRun(WorkerSlot worker, std::span<BlockId> taken);
  // See block_pool_chains.h.
  template <typename Far, typename Near, typename Remove>
  size_t TakeVictimRun(WorkerSlot worker, std::span<BlockId> taken, Far far, Near near,
                       Remove remove);
  // As TakeFreeRun, for a block from TakeEvicted.
  void TakeVictim(BlockId block, WorkerSlot worker);

  // --- Holds ---
  void AddTableRef(BlockId block, WorkerSlot worker);
  // `refs` references of the worker to each; kNoBlock is skipped.
  void AddTableRefs(std::span<const BlockId> blocks, WorkerSlot worker, uint32_t refs);
  // See block_pool_chains.h.
  template <typename AddBlocker, typename Idle>
  void HoldChain(std::span<const BlockId> chain, WorkerSlot worker, AddBlocker add_blocker,
                 Idle idle);
  template <typename Above, typename DropBlocker, typename General, typename Fenced>
  void ReleaseChain(std::span<const BlockId> chain, size_t first, WorkerSlot worker,
                    StepNumber step, Above above, DropBlocker drop_blocker, General general,
                    Fenced fenced);
  // The last reference of the worker leaves a fence of `step`; returns true if it was the last.
  bool DropTableRef(BlockId block, WorkerSlot worker, StepNumber step);
  void AddHold(BlockId block);
  void DropHold(BlockId block);
  void Fence(BlockId block, WorkerSlot worker, StepNumber step);
  // Ends a fence of the worker whose step is at most `completed`.
  void EndFence(BlockId block, WorkerSlot worker, StepNumber completed);
  // The same for all that next() gives until kNoBlock. See block_pool_chains.h.
  template <typename Next>
  void EndFences(WorkerSlot worker, StepNumber completed, Next next);
  // Step of the worker's fence on the block, or 0.
  StepNumber FenceStep(BlockId block, WorkerSlot worker) const;
  // Table references of one worker.
  uint32_t RefsOf(BlockId block, WorkerSlot worker) const;

  // A filling block in tables gets its node, and its content is pending; `above` blocks nothing
  // else yet. Only in plain pools.
  void SealHeld(BlockId block, NodeId node, WorkerSlot owner, uint32_t step, BlockId above);
  // The content of a block that is no variant becomes public. Only in plain pools.
  void EndPending(BlockId block);
  // No hit can use the content any more: the block left the tree and goes first.
  void MarkDead(BlockId block);
  // The dead content was not complete: the block holds nothing.
  void ForgetDead(BlockId block);
  // The block leaves its node: it blocks nothing and nothing blocks it. Call before changing
  // `node`.
  void LeaveNode(BlockId block);

  void SetRetention(BlockId block, uint8_t priority, const Duration* duration);
  // Priorities whose duration has run out by now return to the default.
  void ExpireRetention(TimePoint now);

  TimePoint NextRetentionExpiry() { return timers_.NextDue(); }

  // Derives state and list from the record.
  void Settle(BlockId block);

  // --- Counts ---
  uint64_t CountIn(BlockState state) const { return state_counts_[static_cast<size_t>(state)]; }

  // Of one layer group; 0 for free blocks, which have none.
  uint64_t CountIn(BlockState state, uint32_t group) const;

  uint64_t dead() const { return dead_; }

  // Blocks in tables.
  uint64_t tabled() const { return tabled_; }

  // Free and evictable for all.
  uint64_t OpenFree() const { return lists_[kNoWorker]->free_count + (size_ - fresh_); }

  uint64_t OpenEvictable() const { return lists_[kNoWorker]->evictable_count; }

  // Fenced by this worker alone.
  uint64_t OwnFree(WorkerSlot worker) const { return lists_[worker]->free_count; }

  uint64_t OwnEvictable(WorkerSlot worker) const { return lists_[worker]->evictable_count; }

  uint64_t Available(WorkerSlot worker) const {
    return OpenFree() + OpenEvictable() + OwnFree(worker) + OwnEvictable(worker);
  }

  // Distinct blocks in the worker's tables.
  uint64_t HeldBy(WorkerSlot worker) const { return lists_[worker]->held_count; }

  // Blocks that would be evictable if nothing guarded them; only where there are several groups or
  // windows.
  const absl::btree_set<BlockId>& kept() const { return kept_; }

  // True if `worker` could be given the block now (free or evictable).
  bool AvailableTo(BlockId block, WorkerSlot worker) const;

  // First in the eviction order for all, or kNoBlock.
  BlockId OldestIdle() const { return lists_[kNoWorker]->order.First(); }

  static BlockState StateOf(const Block& block);

 private:
  friend class InvariantChecker;
  static constexpr uint32_t kNil = 0xFFFFFFFFu;
  enum class ListKind : uint8_t { kNone, kFree, kEvictable };

  struct Lists {
    Lists(Block* blocks, Journal* journal) : order(blocks, journal) {}

    uint32_t free_head = kNil;
    uint64_t free_count = 0;
    uint64_t evictable_count = 0;
    uint64_t held_count = 0;
    EvictionOrder order;
  };

  using Shares = std::vector<std::pair<WorkerSlot, uint64_t>>;
  using ShareMap = absl::flat_hash_map<uint32_t, Shares>;

  class ListedRun;
  template <typename Far, typename Near>
  class LookAhead;

  // The record of a block that the worker's table gets, whatever it was.
  Block FillingFor(WorkerSlot worker) const {
    Block record{};
    record.state = BlockState::kFilling;
    record.priority = kDefaultPriority;
    record.allocated_ms = now_ms_;
    record.table_refs = 1;
    record.holder = worker;
    return record;
  }

  static ListKind KindOf(const Block& block);
  static ListKind PlacedKind(const Block& block);
  static bool IsKept(const Block& block);
  void SettleKept(BlockId block);
  void CountState(Block& block);
  void CountInGroup(const Block& block, int delta);
  void Unlink(BlockId block);
  void Link(BlockId block, ListKind kind);
  void FreeListPush(BlockId block, Lists& lists);
  void FreeListRemove(BlockId block, Lists& lists);
  void Reset(BlockId block);
  void OpenRun(WorkerSlot worker, uint32_t front, uint32_t back, uint64_t count);
  void SaveShares(ShareMap& map, uint32_t index);
  void AddCount(uint64_t& count, int delta);

  Journal* journal_;
  BlockingListener* listener_;
  const bool one_group_;
  uint32_t size_;
  ZeroedArray<Block> blocks_;
  // Blocks from here on were never used.
  uint32_t fresh_ = 0;
  uint64_t use_counter_ = 0;
  TimePoint now_{};
  uint32_t now_ms_ = 0;
  std::array<uint64_t, kBlockStates> state_counts_{};
  // The same by group, where there are several.
  std::vector<std::array<uint64_t, kBlockStates>> group_counts_;
  uint64_t dead_ = 0;
  uint64_t parked_ = 0;
  uint64_t tabled_ = 0;
  // By worker slot; slot kNoWorker offers to all.
  std::vector<std::unique_ptr<Lists>> lists_;
  // Only blocks with holder or fence_worker kManyWorkers: table references and fence steps by
  // worker.
  ShareMap holders_;
  ShareMap fences_;
  absl::btree_set<BlockId> kept_;
  RetentionTimers timers_;
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_ENGINE_BLOCK_POOL_H_
