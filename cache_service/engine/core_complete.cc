// What ends when a step is complete: fences, copies, and content that was pending (P5, P9).
#include <algorithm>
#include <utility>

#include "cache_service/engine/block_pool_chains.h"
#include "cache_service/engine/engine_core.h"

namespace quire {

void EngineCore::Complete(WorkerState& worker, StepNumber completed) {
  if (completed <= worker.completed_step) return;
  worker.completed_step = completed;
  worker.completed_at = now_;
  const auto due = [&] {
    return worker.log.empty() || worker.log.front().step > completed ? nullptr
                                                                     : &worker.log.front();
  };
  while (const LogEntry* const first = due()) {
    if (first->kind == LogKind::kReleased) {
      pool_.EndFences(worker.slot, completed, [&] {
        const LogEntry* const next = due();
        if (next == nullptr || next->kind != LogKind::kReleased) return kNoBlock;
        const BlockId block = next->block;
        worker.log.pop_front();
        return block;
      });
      continue;
    }
    const LogEntry entry = *first;
    worker.log.pop_front();
    const Block& block = pool_.Get(entry.block);
    if (entry.kind == LogKind::kCopied) {
      Unhold(entry.block);
    } else if (block.Has(kPendingFlag) && block.owner == worker.slot &&
               block.seal_step == static_cast<uint32_t>(entry.step)) {
      Publish(entry.block, worker.slot);
    }
  }
}

// Changes made outside a step belong to the step whose answer tells them first.
void EngineCore::FlushUnreported(WorkerState& worker) {
  for (const UnreportedEntry& entry : worker.unreported) {
    const auto found = worker.sequences.find(entry.sequence);
    if (found == worker.sequences.end()) continue;
    const std::vector<BlockId>& table = found->second->tables[entry.group];
    if (entry.index >= table.size() || table[entry.index] != entry.block) continue;
    AppendEntry(*found->second, entry.group, entry.index, entry.block);
  }
  worker.unreported.clear();
  for (const BlockId block : std::exchange(worker.unreported_releases, {})) {
    if (pool_.FenceStep(block, worker.slot) != kUnreportedStep) continue;
    pool_.Fence(block, worker.slot, step_);
    Log(block, LogKind::kReleased);
  }
}

void EngineCore::Log(BlockId block, LogKind kind) {
  worker_->log.push_back({step_, block, kind});
  if (journal_.active()) {
    journal_.OnRollback([worker = worker_] { worker->log.pop_back(); });
  } else if (worker_->log.size() > 4096 + 4 * size_t{pool_.size()}) {
    CompactLog(*worker_);
  }
}

// For a release of an earlier step that becomes known only now.
void EngineCore::LogAt(WorkerState& worker, StepNumber step, BlockId block, LogKind kind) {
  const auto at = std::upper_bound(
      worker.log.begin(), worker.log.end(), step,
      [](StepNumber number, const LogEntry& entry) { return number < entry.step; });
  worker.log.insert(at, {step, block, kind});
}

// A worker that never completes may release the same blocks for ever; only the last release of each
// counts.
void EngineCore::CompactLog(WorkerState& worker) {
  std::erase_if(worker.log, [&](const LogEntry& entry) {
    const Block& block = pool_.Get(entry.block);
    switch (entry.kind) {
      case LogKind::kReleased:
        return pool_.FenceStep(entry.block, worker.slot) != entry.step;
      case LogKind::kSealed:
        // Dead content, too, goes with its worker while it is not complete.
        return !(block.Has(kPendingFlag | kDeadFlag) && block.owner == worker.slot &&
                 block.seal_step == static_cast<uint32_t>(entry.step));
      case LogKind::kCopied:
        return false;
    }
    return false;
  });
}

}  // namespace quire
