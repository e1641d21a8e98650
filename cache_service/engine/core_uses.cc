// What keeps blocks and nodes of the tree: what hangs below them, tables, and sequences that will
// go on there.
#include <utility>

#include "cache_service/engine/engine_core.h"

namespace quire {

void EngineCore::OnClosedChanged(const Block& block) {
  if (groups_.has_windows) windows_.ClosedChanged(block.node);
}

// Where no group sees everything, a path may lose all its blocks while a sequence will add to it.
void EngineCore::StandOn(Sequence& sequence, NodeId node) {
  const NodeId before = sequence.node;
  if (before == node) return;
  LeavePath(sequence);
  sequence.node = node;
  if (!groups_.only_windows) return;
  if (node != kNoNode) CountStanding(node, 1);
  if (before != kNoNode && !standing_.contains(before)) RemoveGhosts(before);
}

void EngineCore::LeavePath(Sequence& sequence) {
  const NodeId before = std::exchange(sequence.node, kNoNode);
  if (groups_.only_windows && before != kNoNode) CountStanding(before, ~0u);
}

void EngineCore::CountStanding(NodeId node, uint32_t delta) {
  journal_.OnRollback([this, node, delta] { CountStanding(node, 0 - delta); });
  if ((standing_[node] += delta) == 0) standing_.erase(node);
}

// A block cannot go before what hangs below it. In groups that see everything a node counts the
// children that cannot be given away, and is itself one of its parent's while it counts any.
void EngineCore::OnBlockingChanged(const Block& block, bool blocking) {
  if (block.group != groups_.full || groups_.only_windows) return;
  const NodeId parent = tree_.Get(block.node).parent;
  if (tree_.IsRoot(parent)) return;
  const uint32_t blockers = tree_.AddBlockers(parent, blocking ? 1 : -1);
  if (blockers != (blocking ? 1u : 0u)) return;
  const BlockId above = tree_.BlockOf(parent, groups_.full);
  if (groups() == 1 && above != kNoBlock && pool_.Get(above).table_refs > 0) {
    // In a table: whether it is blocked changes neither its state nor its list.
    pool_.Mut(above).Set(kBlockedFlag, blocking);
    return;
  }
  blocking_queue_.push_back(parent);
  if (blocking_runs_) return;
  blocking_runs_ = true;
  while (!blocking_queue_.empty()) {
    const NodeId node = blocking_queue_.back();
    blocking_queue_.pop_back();
    const bool blocked = tree_.Get(node).blockers > 0;
    for (uint32_t group = 0; group < groups(); ++group) {
      const BlockId own = tree_.BlockOf(node, group);
      if (IsWindow(group) || own == kNoBlock || pool_.Get(own).Has(kBlockedFlag) == blocked) {
        continue;
      }
      pool_.Mut(own).Set(kBlockedFlag, blocked);
      pool_.Settle(own);
    }
  }
  blocking_runs_ = false;
}

// A victim must wait while something resident needs it.
bool EngineCore::IsNeeded(BlockId block) const {
  const Block& record = pool_.Get(block);
  if (record.node == kNoNode) return false;
  if (!IsWindow(record.group)) return !tree_.Get(record.node).leaf();
  return windows_.Needed(record.node, record.group);
}

// --- Uses of a block ---

void EngineCore::Ref(BlockId block, WorkerSlot worker) { pool_.AddTableRef(block, worker); }

void EngineCore::Unref(BlockId block, WorkerSlot worker, StepNumber step) {
  const bool last = pool_.DropTableRef(block, worker, step);
  if (last && step > 0 && step != kUnreportedStep) Log(block, LogKind::kReleased);
}

void EngineCore::Hold(BlockId block) { pool_.AddHold(block); }

void EngineCore::Unhold(BlockId block) { pool_.DropHold(block); }

}  // namespace quire
