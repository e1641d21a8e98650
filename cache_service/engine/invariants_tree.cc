// The prefix tree: its blocks, and what they keep each other from.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cache_service/engine/invariants.h"

namespace quire {

void InvariantChecker::CheckTree() {
  const PrefixTree& tree = core_.tree_;
  for (NodeId node = 1; node < tree.end(); ++node) {
    const Node& record = tree.Get(node);
    if (!record.Has(kUsedNodeFlag)) continue;
    CheckChildren(node);
    if (tree.IsRoot(node)) continue;
    const Node& parent = tree.Get(record.parent);
    if (!parent.Has(kUsedNodeFlag) || parent.depth + 1 != record.depth) {
      Report(5, std::nullopt, "tree", absl::StrCat("node ", node, " has no parent"));
    }
    if (tree.FindChild(record.parent, tree.ContentOf(node)) != node) {
      Report(5, std::nullopt, "tree", absl::StrCat("node ", node, " is not found by its content"));
    }
    for (uint32_t group = 0; group < core_.groups(); ++group) {
      const BlockId block = tree.BlockOf(node, group);
      if (block == kNoBlock) {
        if (!core_.IsWindow(group)) {
          Report(5, std::nullopt, "tree", absl::StrCat("node ", node, " lacks group ", group));
        }
        continue;
      }
      const Block& held = core_.pool_.Get(block);
      if (held.node != node || held.group != group || held.Has(kVariantFlag)) {
        Report(4, block, "tree", "the block does not name the node that names it");
      }
      if (!held.Has(kSealedFlag)) Report(4, block, "tree", "is in the tree but not sealed");
      const bool pending = record.owner != kNoWorker;
      const bool adopted = held.Has(kPendingFlag) && held.owner == record.owner;
      if (pending != held.Has(kPendingFlag) || (pending && !adopted)) {
        Report(4, block, "tree", "pending does not agree with the node");
      }
    }
    if (record.owner != kNoWorker && !core_.tree_.HasOwnBlocks(node)) {
      Report(4, std::nullopt, "tree", absl::StrCat("node ", node, " is pending without a block"));
    }
    for (const NodeVariant& variant : tree.Variants(node)) {
      for (const BlockId block : variant.blocks) {
        if (block == kNoBlock) continue;
        const Block& held = core_.pool_.Get(block);
        if (held.node != node || !held.Has(kVariantFlag) || held.owner != variant.owner) {
          Report(4, block, "tree", "a variant does not agree with its block");
        }
      }
    }
  }
}

void InvariantChecker::CheckChildren(NodeId node) {
  core_.tree_.VisitChildren(node, [&](NodeId child) {
    const Node& record = core_.tree_.Get(child);
    if (record.Has(kUsedNodeFlag) && record.parent == node) return;
    Report(5, std::nullopt, "tree", absl::StrCat("node ", node, " has a wrong child ", child));
  });
}

// Blockers: children whose blocks cannot be given away.
void InvariantChecker::CheckBlockers() {
  const PrefixTree& tree = core_.tree_;
  std::vector<uint32_t> blockers(tree.end());
  for (NodeId node = 1; node < tree.end(); ++node) {
    if (!tree.Get(node).Has(kUsedNodeFlag) || tree.IsRoot(node)) continue;
    const auto count = [&](BlockId block) {
      if (block == kNoBlock) return;
      if (BlockPool::KindOf(core_.pool_.Get(block)) != BlockPool::ListKind::kNone) return;
      ++blockers[tree.Get(node).parent];
    };
    count(tree.BlockOf(node, core_.groups_.full));
    for (const NodeVariant& variant : tree.Variants(node)) {
      count(variant.blocks[core_.groups_.full]);
    }
  }
  for (NodeId node = 1; node < tree.end(); ++node) {
    if (!tree.Get(node).Has(kUsedNodeFlag) || tree.IsRoot(node)) continue;
    const BlockId block = tree.BlockOf(node, core_.groups_.full);
    const bool blocked = block != kNoBlock && core_.pool_.Get(block).Has(kBlockedFlag);
    if (tree.Get(node).blockers != blockers[node] || blocked != (blockers[node] > 0)) {
      Report(5, block, "tree",
             absl::StrCat("counts ", tree.Get(node).blockers, " blocked children, has ",
                          blockers[node]));
    }
  }
}

// What counts as evictable for a worker must be reachable by taking leaves away one after another,
// and no leaf that is left at the end may need any of it: what is counted can be taken.
void InvariantChecker::CheckEvictable(WorkerSlot worker) {
  const PrefixTree& tree = core_.tree_;
  std::vector<NodeId> order;
  for (NodeId node = 1; node < tree.end(); ++node) {
    if (tree.Get(node).Has(kUsedNodeFlag) && !tree.IsRoot(node)) order.push_back(node);
  }
  std::sort(order.begin(), order.end(),
            [&](NodeId a, NodeId b) { return tree.Get(a).depth > tree.Get(b).depth; });
  // Children that stay.
  std::vector<uint32_t> left(tree.end());
  for (const NodeId node : order) {
    const BlockId block = tree.BlockOf(node, core_.groups_.full);
    const bool takeable = MayTake(node, worker);
    if (!core_.groups_.only_windows && takeable && left[node] > 0) {
      Report(2, block, "tree", "counts as evictable, but what hangs below it cannot go");
    }
    const bool bare = HasStandIn(node) ? false : takeable || !core_.tree_.HasBlocks(node);
    if (left[node] == 0 && bare && !core_.standing_.contains(node)) continue;
    ++left[tree.Get(node).parent];
    if (left[node] == 0 && !bare) CheckWindowBehind(node, worker);
  }
}

// Blocks of another worker that stand for the content when the node's own go.
bool InvariantChecker::HasStandIn(NodeId node) const {
  const std::vector<NodeVariant>& variants = core_.tree_.Variants(node);
  return std::any_of(variants.begin(), variants.end(), [&](const NodeVariant& variant) {
    return core_.groups_.only_windows || variant.blocks[core_.groups_.full] != kNoBlock;
  });
}

// The block that stands for the node. Where no group sees everything, any takes it away unless
// another is held, or a window of one token, which needs none, leaves the others.
bool InvariantChecker::MayTake(NodeId node, WorkerSlot worker) const {
  bool any = false;
  bool all = true;
  bool held = false;
  for (uint32_t group = 0; group < core_.groups(); ++group) {
    const BlockId block = core_.tree_.BlockOf(node, group);
    if (block == kNoBlock || (!core_.groups_.only_windows && group != core_.groups_.full)) continue;
    const Block& record = core_.pool_.Get(block);
    // What only leaves below guard comes free with them.
    const bool fits = record.fence_worker == kNoWorker || record.fence_worker == worker;
    const bool available = core_.groups_.only_windows && core_.pool_.kept().contains(block)
                               ? fits
                               : core_.pool_.AvailableTo(block, worker);
    any = any || (available && core_.options_.groups[group].window_tokens != 1);
    all = all && available;
    held = held || record.table_refs > 0 || record.holds > 0;
  }
  return (any && !held) || (all && core_.tree_.HasBlocks(node));
}

void InvariantChecker::CheckWindowBehind(NodeId leaf, WorkerSlot worker) {
  const PrefixTree& tree = core_.tree_;
  const uint32_t end = tree.Get(leaf).depth + 1;
  const uint32_t block_tokens = core_.options_.block_tokens;
  for (uint32_t group = 0; group < core_.groups(); ++group) {
    if (!core_.IsWindow(group)) continue;
    const uint32_t first = core_.groups_.FirstNeeded(group, end * block_tokens);
    NodeId node = leaf;
    for (uint32_t i = end; i-- > first; node = tree.Get(node).parent) {
      const BlockId block = tree.BlockOf(node, group);
      if (core_.groups_.only_windows && node == leaf) continue;
      if (block == kNoBlock || !core_.pool_.AvailableTo(block, worker)) continue;
      Report(2, block, "tree", absl::StrCat("counts as evictable, but leaf ", leaf, " needs it"));
    }
  }
}

void InvariantChecker::CheckProtection() {
  const PrefixTree& tree = core_.tree_;
  for (NodeId node = 1; node < tree.end(); ++node) {
    if (!tree.Get(node).Has(kUsedNodeFlag) || tree.IsRoot(node)) continue;
    const auto found = core_.windows_.leaf_state_.find(node);
    const bool leaf = core_.windows_.IsLeaf(node);
    const bool held = core_.windows_.StaysAsLeaf(node);
    const int expected = int{leaf} + 2 * int{held};
    const int recorded = found == core_.windows_.leaf_state_.end() ? 0 : found->second;
    if (expected != recorded) {
      Report(
          5, std::nullopt, "tree",
          absl::StrCat("node ", node, " protects its window as ", recorded, ", not as ", expected));
    }
    if (core_.windows_.firm_nodes_.contains(node) != core_.windows_.Firm(node)) {
      Report(5, std::nullopt, "tree", absl::StrCat("node ", node, " is wrongly firm or not"));
    }
    CheckGuards(node);
  }
}

// A window block is guarded while a leaf that stays needs it.
void InvariantChecker::CheckGuards(NodeId node) {
  for (uint32_t group = 0; group < core_.groups(); ++group) {
    const BlockId block = core_.tree_.BlockOf(node, group);
    if (!core_.IsWindow(group) || block == kNoBlock) continue;
    const auto found = core_.windows_.protectors_.find(uint64_t{node} << 16 | group);
    const bool guarded = found != core_.windows_.protectors_.end() && found->second.staying > 0;
    if (core_.pool_.Get(block).Has(kGuardedFlag) == guarded) continue;
    Report(5, block, "tree", guarded ? "is not guarded" : "is guarded for nothing");
  }
}

}  // namespace quire
