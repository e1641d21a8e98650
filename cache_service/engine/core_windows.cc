// What keeps window blocks: the leaves behind whose hit position they lie (E1).
//
// A window block may not be evicted while a leaf needs it, and does not count as evictable while
// that leaf is held. Both numbers are kept per node and group, and change only when a node becomes
// or stops being a leaf, or a leaf becomes or stops being held.
#include "cache_service/engine/engine_core.h"

namespace quire {
namespace {

constexpr uint8_t kIsLeaf = 1;
constexpr uint8_t kIsHeldLeaf = 2;

uint64_t ProtectionKey(NodeId node, uint32_t group) { return uint64_t{node} << 16 | group; }

}  // namespace

bool EngineCore::LeafHeld(NodeId node) const {
  for (uint32_t group = 0; group < groups(); ++group) {
    const BlockId block = tree_.BlockOf(node, group);
    if (block == kNoBlock) continue;
    if (!only_windows_ && IsWindow(group)) continue;
    const Block& record = pool_.Get(block);
    if (record.table_refs > 0 || record.holds > 0) return true;
  }
  return false;
}

void EngineCore::LeafChanged(NodeId node) {
  if (tree_.IsRoot(node)) return;
  const bool leaf = tree_.Get(node).child_count == 0;
  const bool held = leaf && LeafHeld(node);
  const auto found = leaf_state_.find(node);
  const uint8_t before = found == leaf_state_.end() ? uint8_t{0} : found->second;
  const auto after = static_cast<uint8_t>((leaf ? kIsLeaf : 0) | (held ? kIsHeldLeaf : 0));
  if (before == after) return;
  journal_.OnRollback([this, node, before] {
    if (before == 0) {
      leaf_state_.erase(node);
    } else {
      leaf_state_[node] = before;
    }
  });
  if (after == 0) {
    leaf_state_.erase(node);
  } else {
    leaf_state_[node] = after;
  }
  Protect(node, int{leaf} - int{(before & kIsLeaf) != 0},
          int{held} - int{(before & kIsHeldLeaf) != 0});
}

// The node goes: it protects nothing any more.
void EngineCore::ForgetLeaf(NodeId node) {
  const auto found = leaf_state_.find(node);
  if (found == leaf_state_.end()) return;
  const uint8_t before = found->second;
  journal_.OnRollback([this, node, before] { leaf_state_[node] = before; });
  leaf_state_.erase(found);
  Protect(node, -int{(before & kIsLeaf) != 0}, -int{(before & kIsHeldLeaf) != 0});
}

void EngineCore::Protect(NodeId leaf, int leaves, int held_leaves) {
  const uint32_t depth = tree_.Get(leaf).depth;
  for (uint32_t group = 0; group < groups(); ++group) {
    if (!IsWindow(group)) continue;
    const uint32_t first =
        FirstNeededBlock(options_.groups[group].window_tokens, (depth + 1) * options_.block_tokens,
                         options_.block_tokens);
    NodeId node = leaf;
    for (uint32_t i = depth + 1; i-- > first; node = tree_.Get(node).parent) {
      const uint64_t key = ProtectionKey(node, group);
      Protection& protection = protection_[key];
      if (journal_.active()) {
        journal_.OnRollback([this, key, copy = protection] {
          if (copy.leaves == 0) {
            protection_.erase(key);
          } else {
            protection_[key] = copy;
          }
        });
      }
      // Without a group that sees everything, a leaf's own block must be able to go first.
      if (!only_windows_ || node != leaf) {
        protection.leaves = static_cast<uint32_t>(static_cast<int>(protection.leaves) + leaves);
      }
      if (!only_windows_ || node != leaf) {
        protection.held_leaves =
            static_cast<uint32_t>(static_cast<int>(protection.held_leaves) + held_leaves);
      }
      const bool gone = protection.leaves == 0 && protection.held_leaves == 0;
      const bool guard_ended = held_leaves < 0 && protection.held_leaves == 0;
      if (gone) protection_.erase(key);
      const BlockId block = tree_.BlockOf(node, group);
      if (block == kNoBlock) continue;
      // Its worker's kernels may still read the window in steps that are not complete.
      if (guard_ended && worker_ != nullptr && out_ != nullptr &&
          pool_.Get(block).Has(kGuardedFlag) && pool_.Get(block).table_refs == 0) {
        pool_.Fence(block, worker_->slot, step_);
        Log(block, LogKind::kReleased);
      }
      BlockPlaced(node, group);
    }
  }
}

void EngineCore::BlockPlaced(NodeId node, uint32_t group) {
  if (!IsWindow(group)) return;
  const BlockId block = tree_.BlockOf(node, group);
  if (block == kNoBlock) return;
  const auto found = protection_.find(ProtectionKey(node, group));
  const bool guarded = found != protection_.end() && found->second.held_leaves > 0;
  const bool needed = found != protection_.end() && found->second.leaves > 0;
  pool_.Mut(block).Set(kGuardedFlag, guarded);
  pool_.Settle(block);
  if (!needed) pool_.Unpark(block);
}

// A block cannot go before what hangs below it. In groups that see everything a node counts the
// children that cannot be given away, and is itself one of its parent's while it counts any.
void EngineCore::OnBlockingChanged(const Block& block, bool blocking) {
  if (block.group != full_group_ || only_windows_) return;
  const NodeId parent = tree_.Get(block.node).parent;
  if (tree_.IsRoot(parent)) return;
  const uint32_t blockers = tree_.AddBlockers(parent, blocking ? 1 : -1);
  if (blockers != (blocking ? 1u : 0u)) return;
  const BlockId above = tree_.BlockOf(parent, full_group_);
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
  if (!IsWindow(record.group)) return tree_.Get(record.node).child_count > 0;
  const auto found = protection_.find(ProtectionKey(record.node, record.group));
  return found != protection_.end() && found->second.leaves > 0;
}

// --- Uses of a block, with what follows for leaves ---

void EngineCore::Ref(BlockId block, WorkerSlot worker) {
  pool_.AddTableRef(block, worker);
  const Block& record = pool_.Get(block);
  if (has_windows_ && record.node != kNoNode && !record.Has(kVariantFlag)) LeafChanged(record.node);
}

void EngineCore::Unref(BlockId block, WorkerSlot worker, StepNumber step) {
  const bool last = pool_.DropTableRef(block, worker, step);
  if (last && step > 0 && step != kUnreportedStep) Log(block, LogKind::kReleased);
  const Block& record = pool_.Get(block);
  if (has_windows_ && record.node != kNoNode && !record.Has(kVariantFlag)) LeafChanged(record.node);
}

void EngineCore::Hold(BlockId block) {
  pool_.AddHold(block);
  const Block& record = pool_.Get(block);
  if (has_windows_ && record.node != kNoNode && !record.Has(kVariantFlag)) LeafChanged(record.node);
}

void EngineCore::Unhold(BlockId block) {
  pool_.DropHold(block);
  const Block& record = pool_.Get(block);
  if (has_windows_ && record.node != kNoNode && !record.Has(kVariantFlag)) LeafChanged(record.node);
}

}  // namespace quire
