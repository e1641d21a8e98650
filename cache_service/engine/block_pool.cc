#include "cache_service/engine/block_pool.h"

#include "cache_service/engine/retention.h"

namespace quire {

BlockPool::BlockPool(uint32_t block_count, uint32_t groups, bool one_group, Journal* journal,
                     BlockingListener* listener)
    : journal_(journal),
      listener_(listener),
      one_group_(one_group),
      size_(block_count),
      blocks_(block_count),
      group_counts_(groups > 1 ? groups : 0),
      timers_(journal) {
  state_counts_[static_cast<size_t>(BlockState::kFree)] = block_count;
  lists_.push_back(std::make_unique<Lists>(blocks_.data(), journal));
}

void BlockPool::SetNow(TimePoint now, uint32_t now_ms) {
  now_ = now;
  now_ms_ = now_ms;
}

void BlockPool::AddWorker(WorkerSlot worker) {
  if (lists_.size() <= worker) lists_.resize(worker + 1u);
  lists_[worker] = std::make_unique<Lists>(blocks_.data(), journal_);
}

void BlockPool::RemoveWorker(WorkerSlot worker) { lists_[worker].reset(); }

void BlockPool::AddCount(uint64_t& count, int delta) {
  journal_->Save(count);
  count += static_cast<uint64_t>(static_cast<int64_t>(delta));
}

// --- State and list ---

BlockState BlockPool::StateOf(const Block& block) {
  if (block.Has(kQuarantineFlag)) return BlockState::kQuarantined;
  const bool held = block.table_refs > 0 || block.holds > 0;
  if (block.Has(kBadFlag) && held) return BlockState::kBad;
  if (block.table_refs == 0 && (block.holds == 0 || !block.Has(kSealedFlag))) {
    if (block.fence_worker != kNoWorker || block.holds > 0) return BlockState::kFenced;
    return block.node != kNoNode || block.Has(kDeadFlag) ? BlockState::kIdle : BlockState::kFree;
  }
  if (!block.Has(kSealedFlag)) return BlockState::kFilling;
  return block.Has(kPendingFlag) ? BlockState::kPending : BlockState::kReferenced;
}

BlockPool::ListKind BlockPool::KindOf(const Block& block) {
  if (block.table_refs > 0 || block.holds > 0 || block.fence_worker == kManyWorkers ||
      block.Has(kQuarantineFlag | kVariantFlag | kGuardedFlag | kBlockedFlag)) {
    return ListKind::kNone;
  }
  if (block.Has(kPendingFlag) && block.fence_worker != block.owner) return ListKind::kNone;
  return block.node != kNoNode || block.Has(kDeadFlag) ? ListKind::kEvictable : ListKind::kFree;
}

BlockPool::ListKind BlockPool::PlacedKind(const Block& block) {
  if (block.place == Place::kNone) return ListKind::kNone;
  return block.place == Place::kFreeList ? ListKind::kFree : ListKind::kEvictable;
}

bool BlockPool::IsKept(const Block& block) {
  if (!block.Has(kGuardedFlag)) return false;
  Block unguarded = block;
  unguarded.Set(kGuardedFlag, false);
  return KindOf(unguarded) == ListKind::kEvictable;
}

void BlockPool::SettleKept(BlockId block) {
  const bool kept = IsKept(Get(block));
  if (Get(block).Has(kKeptFlag) == kept) return;
  Mut(block).Set(kKeptFlag, kept);
  journal_->OnRollback(
      [this, block, kept] { kept ? void(kept_.erase(block)) : void(kept_.insert(block)); });
  kept ? void(kept_.insert(block)) : void(kept_.erase(block));
}

void BlockPool::CountInGroup(const Block& block, int delta) {
  if (group_counts_.empty() || block.state == BlockState::kFree) return;
  AddCount(group_counts_[block.group][static_cast<size_t>(block.state)], delta);
}

uint64_t BlockPool::CountIn(BlockState state, uint32_t group) const {
  if (state == BlockState::kFree) return 0;
  return group_counts_.empty() ? CountIn(state) : group_counts_[group][static_cast<size_t>(state)];
}

void BlockPool::CountState(Block& block) {
  const BlockState state = StateOf(block);
  if (state == block.state) return;
  CountInGroup(block, -1);
  AddCount(state_counts_[static_cast<size_t>(block.state)], -1);
  AddCount(state_counts_[static_cast<size_t>(state)], +1);
  block.state = state;
  CountInGroup(block, +1);
}

void BlockPool::Settle(BlockId block) {
  Block& record = Mut(block);
  CountState(record);
  if (!one_group_ && record.Has(kGuardedFlag | kKeptFlag)) SettleKept(block);
  const ListKind kind = KindOf(record);
  // A variant, too: it stands in when the node's own block goes.
  const bool blocking = kind == ListKind::kNone && record.node != kNoNode;
  if (blocking != record.Has(kBlocksParentFlag)) {
    record.Set(kBlocksParentFlag, blocking);
    listener_->OnBlockingChanged(record, blocking);
  }
  const bool closed =
      record.node != kNoNode && (record.table_refs > 0 || record.holds > 0 ||
                                 record.fence_worker != kNoWorker || record.Has(kPendingFlag));
  const bool firm =
      closed && !one_group_ &&
      (record.table_refs > 0 || record.holds > 0 || record.fence_worker == kManyWorkers ||
       (record.Has(kPendingFlag) && record.fence_worker != record.owner));
  if (closed != record.Has(kClosedFlag) || firm != record.Has(kFirmFlag)) {
    record.Set(kClosedFlag, closed);
    record.Set(kFirmFlag, firm);
    listener_->OnClosedChanged(record);
  }
  const bool same_list = kind == PlacedKind(record) && record.place_worker == record.fence_worker;
  const bool same_band = kind != ListKind::kEvictable || record.place == Place::kParked ||
                         record.band == EvictionOrder::BandOf(record);
  if (kind == ListKind::kNone ? record.place == Place::kNone : same_list && same_band) return;
  Unlink(block);
  Link(block, kind);
}

void BlockPool::Unlink(BlockId block) {
  Block& record = Mut(block);
  if (record.place == Place::kNone) return;
  Lists& lists = *lists_[record.place_worker];
  if (record.place == Place::kFreeList) {
    FreeListRemove(block, lists);
  } else {
    if (record.place == Place::kParked) {
      AddCount(parked_, -1);
    } else {
      lists.order.Remove(block);
    }
    AddCount(lists.evictable_count, -1);
  }
  record.place = Place::kNone;
}

void BlockPool::Link(BlockId block, ListKind kind) {
  if (kind == ListKind::kNone) return;
  Block& record = Mut(block);
  record.place_worker = record.fence_worker;
  Lists& lists = *lists_[record.place_worker];
  if (kind == ListKind::kFree) {
    // What was sealed and taken out of the tree is plain free memory now.
    if (record.Has(kTimedFlag)) timers_.Clear(block);
    record.flags = 0;
    FreeListPush(block, lists);
  } else {
    lists.order.Insert(block);
    AddCount(lists.evictable_count, +1);
  }
}

void BlockPool::FreeListPush(BlockId block, Lists& lists) {
  Block& record = Mut(block);
  record.place = Place::kFreeList;
  record.prev = kNil;
  record.next = lists.free_head;
  if (lists.free_head != kNil) Mut(BlockId{lists.free_head}).prev = Index(block);
  journal_->Save(lists.free_head);
  lists.free_head = Index(block);
  AddCount(lists.free_count, +1);
}

void BlockPool::FreeListRemove(BlockId block, Lists& lists) {
  const Block& record = Get(block);
  if (record.prev == kNil) {
    journal_->Save(lists.free_head);
    lists.free_head = record.next;
  } else {
    Mut(BlockId{record.prev}).next = record.next;
  }
  if (record.next != kNil) Mut(BlockId{record.next}).prev = record.prev;
  AddCount(lists.free_count, -1);
}

// --- Taking blocks ---

void BlockPool::Reset(BlockId block) {
  Block& record = Mut(block);
  if (record.Has(kTimedFlag)) timers_.Clear(block);
  if (record.Has(kDeadFlag)) AddCount(dead_, -1);
  const BlockState state = record.state;
  const uint8_t group = record.group;
  record = Block{};
  record.state = state;
  record.group = group;
  record.priority = kDefaultPriority;
  record.allocated_ms = now_ms_;
  CountState(record);
}

BlockId BlockPool::TakeFree(WorkerSlot worker, bool only_own) {
  uint32_t index = lists_[worker]->free_head;
  if (index == kNil && !only_own) index = lists_[kNoWorker]->free_head;
  if (index == kNil) {
    if (only_own || fresh_ == size_) return kNoBlock;
    journal_->Save(fresh_);
    index = fresh_++;
  } else {
    Unlink(BlockId{index});
  }
  Reset(BlockId{index});
  return BlockId{index};
}

BlockId BlockPool::FirstVictim(WorkerSlot worker, bool only_own) const {
  const BlockId own = worker == kNoWorker ? kNoBlock : lists_[worker]->order.First();
  const BlockId open = only_own ? kNoBlock : lists_[kNoWorker]->order.First();
  if (own == kNoBlock) return open;
  if (open == kNoBlock) return own;
  return EvictionOrder::Before(Get(own), Get(open)) ? own : open;
}

void BlockPool::TakeEvicted(BlockId block) {
  Unlink(block);
  Reset(block);
}

void BlockPool::Park(BlockId block) {
  Block& record = Mut(block);
  lists_[record.place_worker]->order.Remove(block);
  record.place = Place::kParked;
  AddCount(parked_, +1);
}

void BlockPool::Unpark(BlockId block) {
  const Block& record = Get(block);
  if (record.place != Place::kParked) return;
  lists_[record.place_worker]->order.Insert(block);
  AddCount(parked_, -1);
}

bool BlockPool::AvailableTo(BlockId block, WorkerSlot worker) const {
  const Block& record = Get(block);
  return record.place != Place::kNone &&
         (record.place_worker == kNoWorker || record.place_worker == worker);
}

// --- Retention ---

void BlockPool::SetRetention(BlockId block, uint8_t priority, const Duration* duration) {
  Block& record = Mut(block);
  record.priority = priority;
  if (duration != nullptr) {
    timers_.Set(block, *duration);
    if (record.table_refs == 0) timers_.Start(block, now_);
  } else if (record.Has(kTimedFlag)) {
    timers_.Clear(block);
  }
  record.Set(kTimedFlag, duration != nullptr);
  Settle(block);
}

void BlockPool::ExpireRetention(TimePoint now) {
  for (BlockId block = timers_.PopDue(now); block != kNoBlock; block = timers_.PopDue(now)) {
    Block& record = Mut(block);
    record.priority = kDefaultPriority;
    record.Set(kTimedFlag, false);
    Settle(block);
  }
}

}  // namespace quire
