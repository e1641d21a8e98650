// Holding, releasing and taking many blocks at once.
//
// A chain is the table of one sequence, in order: the block before is the one above in the prefix
// tree. What happens to each block is what AddTableRef, DropTableRef and TakeFree do, one after
// another; here counts are summed up, neighbours in an eviction list leave it together, and nothing
// is asked twice. A block in an unusual state takes the general way. Only for pools with one layer
// group without a window, and only while no journal runs.
#ifndef QUIRE_CACHE_SERVICE_ENGINE_BLOCK_POOL_CHAINS_H_
#define QUIRE_CACHE_SERVICE_ENGINE_BLOCK_POOL_CHAINS_H_

#include <array>
#include <span>

#include "cache_service/engine/block_pool.h"
#include "cache_service/engine/fault.h"

namespace quire {

// Blocks of one band that follow one another in its list, to be unlinked in one go.
class BlockPool::ListedRun {
 public:
  explicit ListedRun(BlockPool& pool) : pool_(pool) {}

  ~ListedRun() { Unlink(); }

  ListedRun(const ListedRun&) = delete;
  ListedRun& operator=(const ListedRun&) = delete;

  // Takes a block that is listed in a band. The deeper block stands before the one above it.
  void Add(uint32_t index) {
    Block& record = pool_.blocks_[index];
    if (count_ == 0 || record.next != front_) {
      Unlink();
      back_ = index;
    }
    front_ = index;
    ++count_;
    record.place = Place::kNone;
  }

  void Unlink() {
    if (count_ == 0) return;
    Lists& lists = *pool_.lists_[pool_.blocks_[front_].place_worker];
    lists.order.RemoveRun(front_, back_);
    lists.evictable_count -= count_;
    count_ = 0;
  }

 private:
  BlockPool& pool_;
  uint32_t front_ = 0;
  uint32_t back_ = 0;
  uint64_t count_ = 0;
};

inline constexpr uint16_t kUnusualFlags =
    kTimedFlag | kVariantFlag | kQuarantineFlag | kBadFlag | kGuardedFlag | kDeadFlag;

// Adds a reference of the worker to each. add_blocker(i): chain[i] blocks what is above it from now
// on; true if nothing did before. idle(record): told of a block that was idle.
template <typename AddBlocker, typename Idle>
void BlockPool::HoldChain(std::span<const BlockId> chain, WorkerSlot worker, AddBlocker add_blocker,
                          Idle idle) {
  ListedRun listed(*this);
  uint64_t held = 0;
  uint64_t idle_held = 0;
  std::array<uint64_t, kBlockStates> left{};
  const auto hold = [&](Block& record, size_t i) {
    record.table_refs = 1;
    record.holder = worker;
    record.state = BlockState::kReferenced;
    const bool blocked_before = record.Has(kBlocksParentFlag);
    record.Set(kClosedFlag | kBlocksParentFlag, true);
    if (!blocked_before && add_blocker(i)) blocks_[Index(chain[i - 1])].Set(kBlockedFlag, true);
  };
  for (size_t i = 0; i < chain.size(); ++i) {
    Block& record = blocks_[Index(chain[i])];
    // Mostly nobody holds it.
    if (record.state == BlockState::kIdle && record.place == Place::kBand &&
        !record.Has(kUnusualFlags | kPendingFlag)) {
      idle(record);
      ++idle_held;
      hold(record, i);
      listed.Add(Index(chain[i]));
      continue;
    }
    if (record.table_refs > 0 && record.holder == worker) {
      ++record.table_refs;
      continue;
    }
    if (record.state == BlockState::kIdle) idle(record);
    if (record.table_refs > 0 || record.holds > 0 || record.Has(kUnusualFlags | kPendingFlag)) {
      listed.Unlink();
      AddTableRef(chain[i], worker);
      continue;
    }
    ++held;
    ++left[static_cast<size_t>(record.state)];
    hold(record, i);
    if (record.place == Place::kBand) {
      listed.Add(Index(chain[i]));
    } else if (record.place != Place::kNone) {
      listed.Unlink();
      Unlink(chain[i]);
    }
  }
  held += idle_held;
  left[static_cast<size_t>(BlockState::kIdle)] += idle_held;
  tabled_ += held;
  lists_[worker]->held_count += held;
  state_counts_[static_cast<size_t>(BlockState::kReferenced)] += held;
  for (size_t state = 0; state < left.size(); ++state) state_counts_[state] -= left[state];
}

// The list of a band some blocks ahead, whose records and nodes are asked for meanwhile: far(node)
// when its block's record is there, near(node) when the node may be. Blocks of one prompt mostly
// lie side by side, and so do prompts of one time: where the list is twice as far ahead, the same
// distance again is a good guess.
template <typename Far, typename Near>
class BlockPool::LookAhead {
 public:
  LookAhead(BlockPool& pool, uint32_t front, Far far, Near near)
      : pool_(pool), next_(front), far_(far), near_(near) {
    for (uint32_t& before : before_) before = Next();
  }

  void Step() {
    uint32_t& before = before_[steps_ % kFarBlocks];
    const uint32_t near = before_[(steps_ + kNearBlocks) % kFarBlocks];
    const uint32_t index = Next();
    pool_.Prefetch(BlockId{index + (index - before)});
    pool_.Prefetch(BlockId{index + (index - near)});
    before = index;
    if (near != kNil) near_(pool_.blocks_[near].node);
    ++steps_;
  }

 private:
  static constexpr size_t kFarBlocks = 32;
  static constexpr size_t kNearBlocks = 16;

  uint32_t Next() {
    const uint32_t index = next_;
    if (index == kNil) return index;
    const Block& record = pool_.blocks_[index];
    far_(record.node);
    next_ = record.next;
    return index;
  }

  BlockPool& pool_;
  uint32_t next_;
  Far far_;
  Near near_;
  std::array<uint32_t, kFarBlocks> before_;
  size_t steps_ = 0;
};

inline constexpr size_t kFewVictims = 8;

// Takes the blocks that are first in the order for all, while remove(block, record) takes their
// content out of the tree; false: it needs more than that. It must leave the order as it is. Ends
// before a block that one of the worker's own precedes. far(node), near(node): before a block's
// turn, see LookAhead. Returns how many.
template <typename Far, typename Near, typename Remove>
size_t BlockPool::TakeVictimRun(WorkerSlot worker, std::span<BlockId> taken, Far far, Near near,
                                Remove remove) {
  Lists& open = *lists_[kNoWorker];
  const BlockId own = lists_[worker]->order.First();
  const Block filling = FillingFor(worker);
  size_t count = 0;
  bool usual = true;
  while (usual && count < taken.size()) {
    uint32_t index = Index(open.order.ListedFront());
    if (index == kNil) break;
    const uint8_t band = blocks_[index].band;
    // For a few victims it would cost more than it gives.
    LookAhead look_ahead(*this, taken.size() < kFewVictims ? kNil : index, far, near);
    for (uint32_t next; index != kNil && count < taken.size(); index = next) {
      look_ahead.Step();
      Block& record = blocks_[index];
      next = record.next;
      usual = !record.Has(kTimedFlag | kDeadFlag) &&
              (own == kNoBlock || EvictionOrder::Before(record, Get(own))) &&
              remove(BlockId{index}, record);
      if (!usual) break;
      record = filling;
      taken[count++] = BlockId{index};
    }
    open.order.CutBefore(band, index);
  }
  open.evictable_count -= count;
  tabled_ += count;
  lists_[worker]->held_count += count;
  state_counts_[static_cast<size_t>(BlockState::kIdle)] -= count;
  state_counts_[static_cast<size_t>(BlockState::kFilling)] += count;
  return count;
}

// Releases chain[first, end), from the end. drop_blocker(i): chain[i] does not block what is above
// it any more; true if nothing does now. general(i) releases a block in the general way; fenced(i)
// is told of those that `step` fences.
template <typename Above, typename DropBlocker, typename General, typename Fenced>
void BlockPool::ReleaseChain(std::span<const BlockId> chain, size_t first, WorkerSlot worker,
                             StepNumber step, Above above, DropBlocker drop_blocker,
                             General general, Fenced fenced) {
  Lists& lists = *lists_[step > 0 ? worker : kNoWorker];
  for (size_t i = chain.size(); i-- > first;) {
    Block& record = blocks_[Index(chain[i])];
    if (record.table_refs > 1 && record.holder == worker) {
      --record.table_refs;
      continue;
    }
    const bool usual =
        record.holder == worker && record.node != kNoNode && record.holds == 0 &&
        !record.Has(kUnusualFlags) && !Injected(Fault::kReleaseUnfenced) &&
        (record.fence_worker == kNoWorker || (step > 0 && record.fence_worker == worker)) &&
        (!record.Has(kPendingFlag) || (step > 0 && record.owner == worker)) && above(i);
    if (!usual) {
      general(i);
      continue;
    }
    record.table_refs = 0;
    record.holder = kNoWorker;
    record.last_use = ++use_counter_;
    record.idle_since_ms = now_ms_;
    --tabled_;
    --lists_[worker]->held_count;
    --state_counts_[static_cast<size_t>(record.state)];
    record.state = step > 0 ? BlockState::kFenced : BlockState::kIdle;
    ++state_counts_[static_cast<size_t>(record.state)];
    if (step > 0) {
      record.fence_worker = worker;
      record.fence_step = step;
    } else {
      record.Set(kClosedFlag, false);
    }
    if (!record.Has(kBlockedFlag)) {
      record.Set(kBlocksParentFlag, false);
      if (drop_blocker(i)) blocks_[Index(chain[i - 1])].Set(kBlockedFlag, false);
      record.place_worker = record.fence_worker;
      lists.order.Append(Index(chain[i]));
      ++lists.evictable_count;
    }
    if (step > 0) fenced(i);
  }
}

// Blocks of one table mostly follow one another in the worker's eviction order, and go to the end
// of the one for all together.
template <typename Next>
void BlockPool::EndFences(WorkerSlot worker, StepNumber completed, Next next) {
  uint32_t front = kNil;
  uint32_t back = kNil;
  uint64_t count = 0;
  const auto flush = [&] {
    if (count > 0) OpenRun(worker, front, back, count);
    count = 0;
  };
  for (BlockId block; (block = next()) != kNoBlock;) {
    Block& record = blocks_[Index(block)];
    const bool usual = record.fence_worker == worker && record.fence_step <= completed &&
                       record.state == BlockState::kFenced && record.place == Place::kBand &&
                       !record.Has(kPendingFlag | kVariantFlag | kDeadFlag);
    if (!usual || !plain()) {
      flush();
      EndFence(block, worker, completed);
      continue;
    }
    if (count > 0 && blocks_[back].next != Index(block)) flush();
    if (count++ == 0) front = Index(block);
    back = Index(block);
    record.state = BlockState::kIdle;
    record.fence_worker = record.place_worker = kNoWorker;
    record.Set(kClosedFlag, false);
  }
  flush();
}

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_ENGINE_BLOCK_POOL_CHAINS_H_
