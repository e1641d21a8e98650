// The end of a lease: what the dead worker may still write is quarantined (P11).
#include <algorithm>
#include <utility>

#include "cache_service/engine/engine_core.h"
#include "cache_service/engine/fault.h"

namespace quire {

// The sequences end: public content stays, pending content goes. What the worker may still write is
// quarantined.
void EngineCore::EndLease(WorkerState& worker) {
  ended_leases_.push_back(worker.lease_number);
  std::vector<BlockId> written;
  DropPending(worker, written);
  for (const Sequence* sequence : BySerial(worker)) {
    for (const std::vector<BlockId>& table : sequence->tables) {
      for (const BlockId block : table) {
        if (block != kNoBlock) written.push_back(block);
      }
    }
  }
  counters_.blocks_reclaimed += pool_.HeldBy(worker.slot);
  for (Sequence* sequence : BySerial(worker)) EndSequence(*sequence, false);
  for (const LogEntry& entry : worker.log) {
    if (entry.kind == LogKind::kCopied) Unhold(entry.block);
    if (entry.kind == LogKind::kReleased) {
      pool_.EndFence(entry.block, worker.slot, kUnreportedStep);
    }
  }
  for (const BlockId block : worker.unreported_releases) {
    pool_.EndFence(block, worker.slot, kUnreportedStep);
  }
  if (Injected(Fault::kCopiesNotQuarantined)) {
    for (const LogEntry& entry : worker.log) {
      if (entry.kind == LogKind::kCopied) std::erase(written, entry.block);
    }
  }
  QuarantineBlocks(worker, written);
  leases_.erase(worker.lease);
  worker_names_.erase(worker.name);
  const WorkerSlot slot = worker.slot;
  pool_.RemoveWorker(slot);
  workers_[slot].reset();
  if (options_.memory == PoolMemoryKind::kWorker) {
    // Its memory is gone: nothing is left that a pin could keep.
    while (!pins_.empty()) EndPin(pins_.begin());
    Flush();
  }
  CheckQuarantines();
  FitClaims();
}

std::vector<Sequence*> EngineCore::BySerial(const WorkerState& worker) {
  std::vector<Sequence*> sequences;
  for (const auto& [handle, sequence] : worker.sequences) sequences.push_back(sequence.get());
  std::sort(sequences.begin(), sequences.end(),
            [](const Sequence* a, const Sequence* b) { return a->serial < b->serial; });
  return sequences;
}

// Deepest first; collects what was sealed, copied or freed in steps that are not complete.
void EngineCore::DropPending(WorkerState& worker, std::vector<BlockId>& written) {
  for (auto entry = worker.log.rbegin(); entry != worker.log.rend(); ++entry) {
    const Block& block = pool_.Get(entry->block);
    const bool sealed_here = entry->kind == LogKind::kSealed &&
                             block.Has(kPendingFlag | kDeadFlag) && block.owner == worker.slot &&
                             block.seal_step == static_cast<uint32_t>(entry->step);
    const bool released_here =
        entry->kind == LogKind::kReleased && pool_.FenceStep(entry->block, worker.slot) > 0;
    if (sealed_here || released_here || entry->kind == LogKind::kCopied) {
      written.push_back(entry->block);
    }
    if (sealed_here && block.Has(kDeadFlag)) {
      pool_.ForgetDead(entry->block);
      continue;
    }
    if (!sealed_here || block.node == kNoNode) continue;
    const NodeId node = block.node;
    const uint32_t group = block.group;
    if (block.Has(kVariantFlag)) {
      ShrinkVariant(node, worker.slot, group);
      TakeOut(entry->block);
      RemoveGhosts(node);
      continue;
    }
    TakeOut(entry->block);
    tree_.SetBlock(node, group, kNoBlock);
    if (!tree_.HasOwnBlocks(node)) RemoveNode(node);
  }
  for (const BlockId block : worker.unreported_releases) written.push_back(block);
}

void EngineCore::QuarantineBlocks(const WorkerState& worker, const std::vector<BlockId>& written) {
  if (options_.memory == PoolMemoryKind::kWorker || !worker.map_memory) return;
  if (seams_.mappings == nullptr || seams_.mappings->IsGone(worker.lease_number)) return;
  Quarantine quarantine{worker.name, worker.incarnation, worker.lease_number, now_, {}};
  for (const BlockId block : written) {
    const Block& record = pool_.Get(block);
    // What is in the tree was complete before: the dead worker only reads it.
    if (record.node != kNoNode || record.table_refs > 0 || record.holds > 0 ||
        record.Has(kQuarantineFlag | kDeadFlag)) {
      continue;
    }
    pool_.Mut(block).Set(kQuarantineFlag, true);
    pool_.Settle(block);
    quarantine.blocks.push_back(block);
  }
  if (!quarantine.blocks.empty()) quarantines_.push_back(std::move(quarantine));
}

void EngineCore::CheckQuarantines() {
  for (Quarantine& quarantine : quarantines_) {
    const bool waited =
        Injected(Fault::kQuarantineByTime) && now_ - quarantine.since > options_.fence_timeout;
    const bool mapped =
        seams_.mappings != nullptr && !seams_.mappings->IsGone(quarantine.lease_number);
    if (mapped && !waited) continue;
    for (const BlockId block : quarantine.blocks) {
      pool_.Mut(block).Set(kQuarantineFlag, false);
      pool_.Settle(block);
    }
    quarantine.blocks.clear();
  }
  std::erase_if(quarantines_, [](const Quarantine& q) { return q.blocks.empty(); });
}

std::vector<uint64_t> EngineCore::TakeEndedLeases() { return std::exchange(ended_leases_, {}); }

}  // namespace quire
