#include "cache_service/engine/window_protection.h"

namespace quire {
namespace {

constexpr uint8_t kIsLeaf = 1;
constexpr uint8_t kStays = 2;

}  // namespace

// A node that only a sequence keeps is no hit and needs no window.
bool WindowProtection::IsLeaf(NodeId node) const {
  return tree_.Get(node).leaf() && (!groups_.only_windows || tree_.HasBlocks(node));
}

bool WindowProtection::StaysAsLeaf(NodeId node) const {
  return HasBlockWith(node, kClosedFlag) && !firm_children_.contains(node);
}

// What its worker may take may uncover what stays above it, so only what nobody may take keeps its
// parent from becoming a leaf.
bool WindowProtection::Firm(NodeId node) const {
  // Above what stays, a path stays.
  return firm_children_.contains(node) || HasBlockWith(node, kFirmFlag);
}

bool WindowProtection::HasBlockWith(NodeId node, uint16_t flag) const {
  const auto has = [&](uint32_t group, BlockId block) {
    return (groups_.only_windows || group == groups_.full) && block != kNoBlock &&
           pool_.Get(block).Has(flag);
  };
  for (uint32_t group = 0; group < groups_.count(); ++group) {
    if (has(group, tree_.BlockOf(node, group))) return true;
  }
  if (!tree_.Get(node).Has(kVariantsFlag)) return false;
  // A variant stands in when the node's own blocks go.
  for (const NodeVariant& variant : tree_.Variants(node)) {
    for (uint32_t group = 0; group < groups_.count(); ++group) {
      if (has(group, variant.blocks[group])) return true;
    }
  }
  return false;
}

void WindowProtection::ClosedChanged(NodeId node) {
  LeafChanged(node);
  SetFirm(node, Firm(node));
}

// Its parent counts it, and may be firm by that itself.
void WindowProtection::SetFirm(NodeId node, bool firm) {
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

void WindowProtection::AddFirmChildren(NodeId node, uint32_t delta) {
  if ((firm_children_[node] += delta) == 0) firm_children_.erase(node);
}

void WindowProtection::LeafChanged(NodeId node) {
  if (tree_.IsRoot(node)) return;
  SetLeafState(
      node, static_cast<uint8_t>((IsLeaf(node) ? kIsLeaf : 0) | (StaysAsLeaf(node) ? kStays : 0)));
}

// The node goes: it protects nothing any more.
void WindowProtection::ForgetLeaf(NodeId node) {
  if (groups_.has_windows) SetFirm(node, false);
  if (leaf_state_.contains(node)) SetLeafState(node, 0);
}

void WindowProtection::SetLeafState(NodeId node, uint8_t state) {
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

void WindowProtection::Protect(NodeId leaf, int leaves, int staying) {
  const uint32_t depth = tree_.Get(leaf).depth;
  for (uint32_t group = 0; group < groups_.count(); ++group) {
    if (!groups_.IsWindow(group)) continue;
    const uint32_t first = groups_.FirstNeeded(group, (depth + 1) * groups_.block_tokens);
    NodeId node = leaf;
    for (uint32_t i = depth + 1; i-- > first; node = tree_.Get(node).parent) {
      // Without a group that sees everything, a leaf's own block must be able to go first.
      if (groups_.only_windows && node == leaf) continue;
      AddProtectors(node, group, leaves, staying);
      BlockPlaced(node, group);
    }
  }
}

void WindowProtection::AddProtectors(NodeId node, uint32_t group, int leaves, int staying) {
  const uint64_t key = Key(node, group);
  Protectors& counts = protectors_[key];
  journal_.OnRollback([this, key, before = counts] {
    if (before.leaves == 0 && before.staying == 0) {
      protectors_.erase(key);
    } else {
      protectors_[key] = before;
    }
  });
  counts.leaves = static_cast<uint32_t>(static_cast<int>(counts.leaves) + leaves);
  counts.staying = static_cast<uint32_t>(static_cast<int>(counts.staying) + staying);
  if (counts.leaves == 0 && counts.staying == 0) protectors_.erase(key);
}

void WindowProtection::BlockPlaced(NodeId node, uint32_t group) {
  if (!groups_.IsWindow(group)) return;
  const BlockId block = tree_.BlockOf(node, group);
  if (block == kNoBlock) return;
  const auto found = protectors_.find(Key(node, group));
  const bool guarded = found != protectors_.end() && found->second.staying > 0;
  const bool needed = found != protectors_.end() && found->second.leaves > 0;
  if (pool_.Get(block).Has(kGuardedFlag) != guarded) {
    pool_.Mut(block).Set(kGuardedFlag, guarded);
    pool_.Settle(block);
  }
  if (!needed) pool_.Unpark(block);
}

bool WindowProtection::Needed(NodeId node, uint32_t group) const {
  const auto found = protectors_.find(Key(node, group));
  return found != protectors_.end() && found->second.leaves > 0;
}

}  // namespace quire
