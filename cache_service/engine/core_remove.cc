// Content leaves the tree: eviction, removal on request, flush (E1, E4, E10).

#include "cache_service/engine/engine_core.h"
#include "cache_service/engine/invariants.h"

namespace quire {

void EngineCore::CountEviction(const Block& block, EvictionReason reason, uint64_t times) {
  counters_.blocks_evicted[static_cast<size_t>(reason)][block.priority / 10] += times;
  const uint32_t now_ms = pool_.now_ms();
  block_lifetime_ns_.Add(uint64_t{now_ms - block.allocated_ms} * 1000000, times);
  if (block.table_refs == 0) {
    idle_before_eviction_ns_.Add(uint64_t{now_ms - block.idle_since_ms} * 1000000, times);
  }
}

// The chosen victim leaves the tree; the caller takes the block.
void EngineCore::EvictBlock(BlockId block) {
  const Block record = pool_.Get(block);
  if (record.node == kNoNode) return;
  ForgetChecksum(block);
  pool_.LeaveNode(block);
  tree_.SetBlock(record.node, record.group, kNoBlock);
  if (StoodFor(record.node, record.group)) {
    RemoveNode(record.node);
  } else if (!tree_.HasOwnBlocks(record.node)) {
    // Nobody will publish it, but what hangs below it.
    tree_.SetOwner(record.node, kNoWorker, tree_.Get(record.node).sealer);
  }
}

// True if without its block of the group, which it has lost, the node is no use. Where no group
// sees everything, this is so at an end of which nobody holds another block; a window of one token
// needs nothing before it.
bool EngineCore::StoodFor(NodeId node, uint32_t group) const {
  if (!IsWindow(group)) return true;
  if (!groups_.only_windows || !tree_.Get(node).leaf()) return false;
  if (!tree_.HasOwnBlocks(node)) return true;
  if (options_.groups[group].window_tokens == 1) return false;
  for (uint32_t other = 0; other < groups(); ++other) {
    const BlockId block = tree_.BlockOf(node, other);
    if (block == kNoBlock) continue;
    if (pool_.Get(block).table_refs > 0 || pool_.Get(block).holds > 0) return false;
  }
  return true;
}

// A childless node lost a block that every hit on it needs: its other blocks are dead.
void EngineCore::RemoveNode(NodeId node) {
  const NodeId parent = tree_.Get(node).parent;
  for (uint32_t group = 0; group < groups(); ++group) {
    const BlockId block = tree_.BlockOf(node, group);
    if (block == kNoBlock) continue;
    LeaveDead(block);
    tree_.SetBlock(node, group, kNoBlock);
  }
  DropPartialVariants(node);
  if (tree_.Get(node).Has(kVariantsFlag)) {
    // Another worker's pending blocks stand for the content from now on.
    const NodeVariant variant = tree_.Variants(node).front();
    tree_.SetOwner(node, kNoWorker, 0);
    SwapVariantIn(node, variant.owner);
    GuardVariants(node);
    return;
  }
  // Below it may be what only sequences keep.
  if (standing_.contains(node) || !tree_.Get(node).leaf()) {
    tree_.SetOwner(node, kNoWorker, 0);
    windows_.LeafChanged(node);
    return;
  }
  windows_.ForgetLeaf(node);
  tree_.Remove(node);
  RemoveGhosts(parent);
}

// No hit can use the block any more. While somebody holds it, it just leaves the tree.
void EngineCore::LeaveDead(BlockId block) {
  const Block& record = pool_.Get(block);
  if (record.table_refs > 0 || record.holds > 0) {
    TakeOut(block);
  } else {
    ForgetChecksum(block);
    pool_.MarkDead(block);
  }
}

// Variants that only gave a node its lost window blocks back cannot stand for the content alone.
void EngineCore::DropPartialVariants(NodeId node) {
  if (groups_.only_windows || !tree_.Get(node).Has(kVariantsFlag)) return;
  const std::vector<NodeVariant> variants = tree_.Variants(node);
  for (const NodeVariant& variant : variants) {
    if (variant.blocks[groups_.full] != kNoBlock) continue;
    for (const BlockId block : variant.blocks) {
      if (block != kNoBlock) LeaveDead(block);
    }
    tree_.RemoveVariant(node, variant.owner);
  }
}

// After a node went: its parent may be a leaf now, or a mere path to nothing.
void EngineCore::RemoveGhosts(NodeId node) {
  while (node != kNoNode && tree_.Get(node).Has(kUsedNodeFlag) && !tree_.IsRoot(node)) {
    if (!tree_.Get(node).leaf()) return;
    if (tree_.HasBlocks(node) || standing_.contains(node)) break;
    const NodeId parent = tree_.Get(node).parent;
    windows_.ForgetLeaf(node);
    tree_.Remove(node);
    node = parent;
  }
  if (node == kNoNode || !tree_.Get(node).Has(kUsedNodeFlag) || tree_.IsRoot(node)) return;
  GuardVariants(node);
  for (uint32_t group = 0; group < groups(); ++group) {
    if (IsWindow(group)) continue;
    const BlockId block = tree_.BlockOf(node, group);
    if (block != kNoBlock) pool_.Unpark(block);
  }
  if (groups_.has_windows) {
    windows_.LeafChanged(node);
    for (uint32_t group = 0; group < groups(); ++group) windows_.BlockPlaced(node, group);
  }
}

void EngineCore::TakeOut(BlockId block) {
  ForgetChecksum(block);
  pool_.LeaveNode(block);
  Block& record = pool_.Mut(block);
  record.Set(kPendingFlag | kVariantFlag | kGuardedFlag, false);
  pool_.Settle(block);
}

// Removes the nodes, none of which is below another, and all below them; roots themselves stay.
// Returns the number of blocks. Held ones stay with their holders.
uint64_t EngineCore::RemoveSubtrees(const std::vector<NodeId>& tops, EvictionReason reason) {
  std::vector<NodeId> parents;
  std::vector<NodeId> order;
  for (const NodeId top : tops) {
    if (tree_.IsRoot(top)) {
      tree_.VisitChildren(top, [&](NodeId child) { order.push_back(child); });
    } else {
      order.push_back(top);
      parents.push_back(tree_.Get(top).parent);
    }
  }
  for (size_t i = 0; i < order.size(); ++i) {
    tree_.VisitChildren(order[i], [&](NodeId child) { order.push_back(child); });
  }
  const uint64_t blocks = TakeOutNodes(order, reason);
  // Once for all: every sequence is looked at.
  TaintSequences({order.begin(), order.end()});
  for (size_t i = order.size(); i-- > 0;) {
    windows_.ForgetLeaf(order[i]);
    tree_.Remove(order[i]);
  }
  for (const NodeId parent : parents) RemoveGhosts(parent);
  return blocks;
}

// From the last on, so that what is below goes first.
uint64_t EngineCore::TakeOutNodes(std::span<const NodeId> nodes, EvictionReason reason) {
  uint64_t blocks = 0;
  const auto take_out = [&](BlockId block) {
    if (block == kNoBlock) return;
    CountEviction(pool_.Get(block), reason);
    TakeOut(block);
    ++blocks;
  };
  for (size_t i = nodes.size(); i-- > 0;) {
    for (uint32_t group = 0; group < groups(); ++group) take_out(tree_.BlockOf(nodes[i], group));
    for (const NodeVariant& variant : tree_.Variants(nodes[i])) {
      for (const BlockId block : variant.blocks) take_out(block);
    }
  }
  return blocks;
}

// A sequence whose blocks left the tree publishes nothing more.
void EngineCore::TaintSequences(const absl::flat_hash_set<NodeId>& removed) {
  for (const auto& worker : workers_) {
    if (worker == nullptr) continue;
    for (auto& [handle, sequence] : worker->sequences) {
      if (!sequence->publishes) {
        if (removed.contains(sequence->node)) LeavePath(*sequence);
        continue;
      }
      // A sequence cut back into a sealed block holds it, though its path ends before.
      const std::vector<BlockId>& table = sequence->tables[0];
      const bool holds_tail = table.size() > sequence->sealed &&
                              pool_.Get(table[sequence->sealed]).Has(kSealedFlag) &&
                              pool_.Get(table[sequence->sealed]).node == kNoNode;
      if (!holds_tail && !removed.contains(sequence->node)) continue;
      SaveSequence(*sequence);
      sequence->publishes = false;
      LeavePath(*sequence);
    }
  }
}

absl::StatusOr<uint64_t> EngineCore::EvictPrefix(const PrefixSelector& prefix) {
  ApplyDue();
  absl::StatusOr<NodeId> root = RootOf(prefix);
  if (!root.ok()) return root.status();
  if (*root == kNoNode) return 0;
  const uint32_t block_tokens = options_.block_tokens;
  const auto length = static_cast<uint32_t>(prefix.tokens.size());
  NodeId node = *root;
  uint32_t first = 0;
  std::vector<DigestMark> marks;
  const auto content = [&](uint32_t count) {
    ContentView view{prefix.tokens.data() + first, count, {}};
    marks = MarksOf(prefix.digests, first, count);
    view.marks = marks;
    return view;
  };
  for (; first + block_tokens <= length; first += block_tokens) {
    node = tree_.FindChild(node, content(block_tokens));
    if (node == kNoNode) return 0;
  }
  const uint32_t rest = length - first;
  std::vector<NodeId> tops;
  if (rest == 0) tops.push_back(node);
  tree_.VisitPartial(node, content(rest), [&](NodeId child, uint32_t common) {
    if (common < rest) return true;
    tops.push_back(child);
    return false;
  });
  const uint64_t blocks = RemoveSubtrees(tops, EvictionReason::kRequested);
  UnpinRemoved();
  // What stays above may need its window now.
  FitClaims();
  return blocks;
}

uint64_t EngineCore::Flush() {
  ApplyDue();
  std::vector<NodeId> roots;
  for (NodeId node = 1; node < tree_.end(); ++node) {
    if (tree_.Get(node).Has(kUsedNodeFlag) && tree_.IsRoot(node)) roots.push_back(node);
  }
  uint64_t blocks = RemoveSubtrees(roots, EvictionReason::kFlushed);
  // Old content may also be in blocks that are not sealed yet.
  for (const auto& worker : workers_) {
    if (worker == nullptr) continue;
    for (auto& [handle, sequence] : worker->sequences) {
      sequence->publishes = false;
      LeavePath(*sequence);
    }
  }
  UnpinRemoved();
  blocks += FreeDead();
  FitClaims();
  return blocks;
}

// What no hit could use any more lies about until it is taken.
uint64_t EngineCore::FreeDead() {
  const uint64_t blocks = pool_.dead();
  for (uint32_t index = 0; pool_.dead() > 0; ++index) {
    const BlockId block{index};
    if (!pool_.Get(block).Has(kDeadFlag)) continue;
    CountEviction(pool_.Get(block), EvictionReason::kFlushed);
    pool_.ForgetDead(block);
  }
  return blocks;
}

AuditReport EngineCore::Audit() {
  ApplyDue();
  AuditReport report = InvariantChecker(*this).Check();
  ++counters_.audits;
  counters_.audit_failures += report.findings.size();
  return report;
}

}  // namespace quire
