// Holds of blocks: table references, copies and pins, fences, and the tree.
#include <algorithm>

#include "cache_service/engine/block_pool.h"
#include "cache_service/engine/fault.h"

namespace quire {

void BlockPool::SaveShares(ShareMap& map, uint32_t index) {
  if (!journal_->active()) return;
  const auto found = map.find(index);
  Shares before = found == map.end() ? Shares{} : found->second;
  journal_->OnRollback([&map, index, before] {
    if (before.empty()) {
      map.erase(index);
    } else {
      map[index] = before;
    }
  });
}

void BlockPool::AddTableRef(BlockId block, WorkerSlot worker) {
  Block& record = Mut(block);
  if (record.table_refs == 0) {
    AddCount(tabled_, +1);
    record.holder = worker;
    if (record.Has(kTimedFlag)) timers_.Stop(block);
    AddCount(lists_[worker]->held_count, +1);
  } else if (record.holder != worker) {
    SaveShares(holders_, Index(block));
    Shares& shares = holders_[Index(block)];
    if (record.holder != kManyWorkers) shares = {{record.holder, record.table_refs}};
    record.holder = kManyWorkers;
    const auto found = std::find_if(shares.begin(), shares.end(),
                                    [worker](const auto& share) { return share.first == worker; });
    if (found == shares.end()) {
      shares.emplace_back(worker, 1);
      AddCount(lists_[worker]->held_count, +1);
    } else {
      ++found->second;
    }
  }
  // A further reference changes neither state nor list.
  if (++record.table_refs == 1) Settle(block);
}

bool BlockPool::DropTableRef(BlockId block, WorkerSlot worker, StepNumber step) {
  Block& record = Mut(block);
  --record.table_refs;
  if (record.table_refs > 0 && record.holder == worker) return false;
  bool last_of_worker = record.table_refs == 0;
  if (record.holder == kManyWorkers) {
    SaveShares(holders_, Index(block));
    Shares& shares = holders_[Index(block)];
    const auto found = std::find_if(shares.begin(), shares.end(),
                                    [worker](const auto& share) { return share.first == worker; });
    last_of_worker = --found->second == 0;
    if (last_of_worker) shares.erase(found);
    if (shares.size() == 1) {
      record.holder = shares[0].first;
      holders_.erase(Index(block));
    }
  }
  if (record.table_refs == 0) {
    AddCount(tabled_, -1);
    record.holder = kNoWorker;
    journal_->Save(use_counter_);
    record.last_use = ++use_counter_;
    record.idle_since_ms = now_ms_;
    if (record.Has(kTimedFlag)) timers_.Start(block, now_);
  }
  if (last_of_worker) {
    AddCount(lists_[worker]->held_count, -1);
    const bool fenced = !Injected(Fault::kReleaseUnfenced) &&
                        (record.table_refs == 0 || !Injected(Fault::kOnlyLastHolderFenced));
    if (step > 0 && fenced) Fence(block, worker, step);
  }
  Settle(block);
  return last_of_worker;
}

uint32_t BlockPool::RefsOf(BlockId block, WorkerSlot worker) const {
  const Block& record = Get(block);
  if (record.holder != kManyWorkers) return record.holder == worker ? record.table_refs : 0;
  for (const auto& [holder, refs] : holders_.at(Index(block))) {
    if (holder == worker) return static_cast<uint32_t>(refs);
  }
  return 0;
}

void BlockPool::AddHold(BlockId block) {
  ++Mut(block).holds;
  Settle(block);
}

void BlockPool::DropHold(BlockId block) {
  --Mut(block).holds;
  Settle(block);
}

void BlockPool::Fence(BlockId block, WorkerSlot worker, StepNumber step) {
  Block& record = Mut(block);
  if (record.fence_worker == kNoWorker || record.fence_worker == worker) {
    record.fence_worker = worker;
    record.fence_step = step;
    return;
  }
  SaveShares(fences_, Index(block));
  Shares& shares = fences_[Index(block)];
  if (record.fence_worker != kManyWorkers) shares = {{record.fence_worker, record.fence_step}};
  record.fence_worker = kManyWorkers;
  const auto found = std::find_if(shares.begin(), shares.end(),
                                  [worker](const auto& share) { return share.first == worker; });
  if (found == shares.end()) {
    shares.emplace_back(worker, step);
  } else {
    found->second = step;
  }
}

StepNumber BlockPool::FenceStep(BlockId block, WorkerSlot worker) const {
  const Block& record = Get(block);
  if (record.fence_worker == worker) return record.fence_step;
  if (record.fence_worker != kManyWorkers) return 0;
  for (const auto& [holder, step] : fences_.at(Index(block))) {
    if (holder == worker) return step;
  }
  return 0;
}

void BlockPool::EndFence(BlockId block, WorkerSlot worker, StepNumber completed) {
  const StepNumber step = FenceStep(block, worker);
  if (step == 0 || step > completed) return;
  Block& record = Mut(block);
  if (record.fence_worker == worker) {
    record.fence_worker = kNoWorker;
  } else {
    SaveShares(fences_, Index(block));
    Shares& shares = fences_[Index(block)];
    std::erase_if(shares, [worker](const auto& share) { return share.first == worker; });
    if (shares.size() == 1) {
      record.fence_worker = shares[0].first;
      record.fence_step = shares[0].second;
      fences_.erase(Index(block));
    }
  }
  Settle(block);
}

void BlockPool::LeaveNode(BlockId block) {
  Block& record = Mut(block);
  if (record.Has(kBlocksParentFlag)) listener_->OnBlockingChanged(record, false);
  if (record.Has(kClosedFlag)) {
    record.Set(kClosedFlag | kFirmFlag, false);
    listener_->OnClosedChanged(record);
  }
  record.Set(kBlocksParentFlag | kBlockedFlag, false);
  record.node = kNoNode;
}

void BlockPool::MarkDead(BlockId block) {
  LeaveNode(block);
  Block& record = Mut(block);
  record.Set(kPendingFlag | kVariantFlag | kGuardedFlag, false);
  record.Set(kDeadFlag, true);
  AddCount(dead_, +1);
  Settle(block);
  // Nothing depends on it any more.
  Unpark(block);
}

void BlockPool::ForgetDead(BlockId block) {
  AddCount(dead_, -1);
  Mut(block).Set(kDeadFlag | kSealedFlag, false);
  Settle(block);
}

}  // namespace quire
