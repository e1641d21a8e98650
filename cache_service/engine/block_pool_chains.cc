#include "cache_service/engine/block_pool_chains.h"

#include "cache_service/engine/retention.h"

namespace quire {

void BlockPool::TakeFreeRun(WorkerSlot worker, std::span<BlockId> taken) {
  const Block filling = FillingFor(worker);
  size_t at = 0;
  for (const WorkerSlot from : {worker, kNoWorker}) {
    Lists& lists = *lists_[from];
    for (; at < taken.size() && lists.free_head != kNil; ++at) {
      const uint32_t index = lists.free_head;
      lists.free_head = blocks_[index].next;
      --lists.free_count;
      --state_counts_[static_cast<size_t>(blocks_[index].state)];
      blocks_[index] = filling;
      taken[at] = BlockId{index};
    }
    if (lists.free_head != kNil) blocks_[lists.free_head].prev = kNil;
  }
  state_counts_[static_cast<size_t>(BlockState::kFree)] -= taken.size() - at;
  for (; at < taken.size(); ++at) {
    blocks_[fresh_] = filling;
    taken[at] = BlockId{fresh_++};
  }
  tabled_ += taken.size();
  lists_[worker]->held_count += taken.size();
  state_counts_[static_cast<size_t>(BlockState::kFilling)] += taken.size();
}

void BlockPool::TakeVictim(BlockId block, WorkerSlot worker) {
  Block& record = blocks_[Index(block)];
  --state_counts_[static_cast<size_t>(record.state)];
  record = FillingFor(worker);
  ++tabled_;
  ++lists_[worker]->held_count;
  ++state_counts_[static_cast<size_t>(BlockState::kFilling)];
}

void BlockPool::TakePlainVictim(BlockId block) {
  Block& record = blocks_[Index(block)];
  if (record.next < size_) __builtin_prefetch(&blocks_[record.next], 1);
  Lists& lists = *lists_[record.place_worker];
  lists.order.Remove(block);
  --lists.evictable_count;
  --state_counts_[static_cast<size_t>(record.state)];
  ++state_counts_[static_cast<size_t>(BlockState::kFree)];
  record = Block{};
  record.priority = kDefaultPriority;
  record.allocated_ms = now_ms_;
}

// What lies from `front` to `back` in a list of the worker's order is no longer fenced.
void BlockPool::OpenRun(WorkerSlot worker, uint32_t front, uint32_t back, uint64_t count) {
  Lists& own = *lists_[worker];
  Lists& open = *lists_[kNoWorker];
  own.order.RemoveRun(front, back);
  own.evictable_count -= count;
  open.evictable_count += count;
  state_counts_[static_cast<size_t>(BlockState::kFenced)] -= count;
  state_counts_[static_cast<size_t>(BlockState::kIdle)] += count;
  if (open.order.AppendRun(front, back)) return;
  for (uint32_t index = front, next; count > 0; --count, index = next) {
    next = blocks_[index].next;
    open.order.Insert(BlockId{index});
  }
}

void BlockPool::SealHeld(BlockId block, NodeId node, WorkerSlot owner, uint32_t step,
                         BlockId above) {
  Block& record = blocks_[Index(block)];
  record.node = node;
  record.owner = owner;
  record.seal_step = step;
  record.state = BlockState::kPending;
  record.flags = kSealedFlag | kPendingFlag | kBlocksParentFlag | kClosedFlag;
  --state_counts_[static_cast<size_t>(BlockState::kFilling)];
  ++state_counts_[static_cast<size_t>(BlockState::kPending)];
  blocks_[Index(above)].Set(kBlockedFlag, true);
}

void BlockPool::EndPending(BlockId block) {
  Block& record = blocks_[Index(block)];
  record.Set(kPendingFlag, false);
  if (record.state != BlockState::kPending) return Settle(block);
  // Held, and so it stays.
  record.state = BlockState::kReferenced;
  --state_counts_[static_cast<size_t>(BlockState::kPending)];
  ++state_counts_[static_cast<size_t>(BlockState::kReferenced)];
}

void BlockPool::AddTableRefs(std::span<const BlockId> blocks, WorkerSlot worker, uint32_t refs) {
  for (const BlockId block : blocks) {
    if (block == kNoBlock) continue;
    Block& record = blocks_[Index(block)];
    if (record.table_refs > 0 && record.holder == worker && !journal_->active()) {
      record.table_refs += refs;
      continue;
    }
    for (uint32_t i = 0; i < refs; ++i) AddTableRef(block, worker);
  }
}

}  // namespace quire
