// What keeps window blocks: the leaves behind whose hit position they lie (E1).
//
// A window block may not be evicted while a leaf needs it. It does not even count as evictable
// while a node needs it that will stay when all that may be evicted below it is gone: one that is
// closed (held, fenced or pending) and has no firm child. For the worker that fences such a node
// itself this is stricter than needed, until its step is complete; without full attention also for
// others, where somebody fences what is below. Both numbers are kept per node and group.
#include <utility>

#include "cache_service/engine/engine_core.h"

namespace quire {
namespace {

constexpr uint8_t kIsLeaf = 1;
constexpr uint8_t kStays = 2;

uint64_t ProtectionKey(NodeId node, uint32_t group) { return uint64_t{node} << 16 | group; }

}  // namespace

bool EngineCore::Closed(NodeId node) const { return HasBlockWith(node, kClosedFlag); }

// What its worker may take may uncover what stays above it, so only what nobody may take keeps its
// parent from becoming a leaf.
bool EngineCore::Firm(NodeId node) const {
  // Above what stays, a path stays.
  return firm_children_.contains(node) || HasBlockWith(node, kFirmFlag);
}

bool EngineCore::HasBlockWith(NodeId node, uint16_t flag) const {
  const auto has = [&](uint32_t group, BlockId block) {
    return (only_windows_ || group == full_group_) && block != kNoBlock &&
           pool_.Get(block).Has(flag);
  };
  for (uint32_t group = 0; group < groups(); ++group) {
    if (has(group, tree_.BlockOf(node, group))) return true;
  }
  if (!tree_.Get(node).Has(kVariantsFlag)) return false;
  // A variant stands in when the node's own blocks go.
  for (const NodeVariant& variant : tree_.Variants(node)) {
    for (uint32_t group = 0; group < groups(); ++group) {
      if (has(group, variant.blocks[group])) return true;
    }
  }
  return false;
}

bool EngineCore::StaysAsLeaf(NodeId node) const {
  return Closed(node) && !firm_children_.contains(node);
}

void EngineCore::OnClosedChanged(const Block& block) {
  if (has_windows_) ClosedChanged(block.node);
}

void EngineCore::ClosedChanged(NodeId node) {
  LeafChanged(node);
  SetFirm(node, Firm(node));
}

// Its parent counts it, and may be firm by that itself.
void EngineCore::SetFirm(NodeId node, bool firm) {
  while (firm_nodes_.contains(node) != firm) {
    journal_.OnRollback([this, node, firm] {
      firm ? void(firm_nodes_.erase(node)) : void(firm_nodes_.insert(node));
    });
    firm ? void(firm_nodes_.insert(node)) : void(firm_nodes_.erase(node));
    const NodeId parent = tree_.Get(node).parent;
    const uint32_t delta = firm ? 1u : ~0u;
    journal_.OnRollback([this, parent, delta] { AddFirmChildren(parent, 0 - delta); });
    AddFirmChildren(parent, delta);
    LeafChanged(parent);
    if (tree_.IsRoot(parent)) return;
    node = parent;
    firm = Firm(node);
  }
}

void EngineCore::AddFirmChildren(NodeId node, uint32_t delta) {
  if ((firm_children_[node] += delta) == 0) firm_children_.erase(node);
}

bool EngineCore::HasBlocks(NodeId node) const {
  return tree_.Get(node).Has(kVariantsFlag) || !HasNoneOfItsOwn(node);
}

// A node that only a sequence keeps is no hit and needs no window.
bool EngineCore::IsLeaf(NodeId node) const {
  return tree_.Get(node).leaf() && (!only_windows_ || HasBlocks(node));
}

// Where no group sees everything, a path may lose all its blocks while a sequence will add to it.
void EngineCore::StandOn(Sequence& sequence, NodeId node) {
  const NodeId before = sequence.node;
  if (before == node) return;
  LeavePath(sequence);
  sequence.node = node;
  if (!only_windows_) return;
  if (node != kNoNode) CountStanding(node, 1);
  if (before != kNoNode && !standing_.contains(before)) RemoveGhosts(before);
}

void EngineCore::LeavePath(Sequence& sequence) {
  const NodeId before = std::exchange(sequence.node, kNoNode);
  if (only_windows_ && before != kNoNode) CountStanding(before, ~0u);
}

void EngineCore::CountStanding(NodeId node, uint32_t delta) {
  journal_.OnRollback([this, node, delta] { CountStanding(node, 0 - delta); });
  if ((standing_[node] += delta) == 0) standing_.erase(node);
}

void EngineCore::LeafChanged(NodeId node) {
  if (tree_.IsRoot(node)) return;
  SetLeafState(
      node, static_cast<uint8_t>((IsLeaf(node) ? kIsLeaf : 0) | (StaysAsLeaf(node) ? kStays : 0)));
}

// The node goes: it protects nothing any more.
void EngineCore::ForgetLeaf(NodeId node) {
  if (has_windows_) SetFirm(node, false);
  if (leaf_state_.contains(node)) SetLeafState(node, 0);
}

void EngineCore::SetLeafState(NodeId node, uint8_t state) {
  const auto found = leaf_state_.find(node);
  const uint8_t before = found == leaf_state_.end() ? uint8_t{0} : found->second;
  if (before == state) return;
  journal_.OnRollback([this, node, before] {
    if (before == 0) {
      leaf_state_.erase(node);
    } else {
      leaf_state_[node] = before;
    }
  });
  if (state == 0) {
    leaf_state_.erase(node);
  } else {
    leaf_state_[node] = state;
  }
  Protect(node, int{(state & kIsLeaf) != 0} - int{(before & kIsLeaf) != 0},
          int{(state & kStays) != 0} - int{(before & kStays) != 0});
}

void EngineCore::Protect(NodeId leaf, int leaves, int staying) {
  const uint32_t depth = tree_.Get(leaf).depth;
  for (uint32_t group = 0; group < groups(); ++group) {
    if (!IsWindow(group)) continue;
    const uint32_t first =
        FirstNeededBlock(options_.groups[group].window_tokens, (depth + 1) * options_.block_tokens,
                         options_.block_tokens);
    NodeId node = leaf;
    for (uint32_t i = depth + 1; i-- > first; node = tree_.Get(node).parent) {
      // Without a group that sees everything, a leaf's own block must be able to go first.
      if (only_windows_ && node == leaf) continue;
      const uint64_t key = ProtectionKey(node, group);
      Protection& protection = protection_[key];
      if (journal_.active()) {
        journal_.OnRollback([this, key, copy = protection] {
          if (copy.leaves == 0 && copy.staying == 0) {
            protection_.erase(key);
          } else {
            protection_[key] = copy;
          }
        });
      }
      protection.leaves = static_cast<uint32_t>(static_cast<int>(protection.leaves) + leaves);
      protection.staying = static_cast<uint32_t>(static_cast<int>(protection.staying) + staying);
      if (protection.leaves == 0 && protection.staying == 0) protection_.erase(key);
      BlockPlaced(node, group);
    }
  }
}

void EngineCore::BlockPlaced(NodeId node, uint32_t group) {
  if (!IsWindow(group)) return;
  const BlockId block = tree_.BlockOf(node, group);
  if (block == kNoBlock) return;
  const auto found = protection_.find(ProtectionKey(node, group));
  const bool guarded = found != protection_.end() && found->second.staying > 0;
  const bool needed = found != protection_.end() && found->second.leaves > 0;
  if (pool_.Get(block).Has(kGuardedFlag) != guarded) {
    pool_.Mut(block).Set(kGuardedFlag, guarded);
    pool_.Settle(block);
  }
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
  if (!IsWindow(record.group)) return !tree_.Get(record.node).leaf();
  const auto found = protection_.find(ProtectionKey(record.node, record.group));
  return found != protection_.end() && found->second.leaves > 0;
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
