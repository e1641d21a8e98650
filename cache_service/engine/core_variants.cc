// Blocks of several workers for one content: the node's own, and those kept beside it until their
// steps are complete (P6).
#include <algorithm>
#include <utility>

#include "cache_service/engine/engine_core.h"

namespace quire {

// The worker's variant becomes the node's content; what was there becomes a variant.
void EngineCore::SwapVariantIn(NodeId node, WorkerSlot worker) {
  const WorkerSlot other = tree_.Get(node).owner;
  const NodeVariant incoming = *tree_.VariantOf(node, worker);
  NodeVariant outgoing{other, tree_.Get(node).sealer, std::vector<BlockId>(groups(), kNoBlock)};
  RemoveVariant(node, worker);
  for (uint32_t group = 0; group < groups(); ++group) {
    const BlockId before = tree_.BlockOf(node, group);
    outgoing.blocks[group] = before;
    tree_.SetBlock(node, group, incoming.blocks[group]);
    if (before != kNoBlock) {
      pool_.Mut(before).Set(kVariantFlag, true);
      pool_.Mut(before).Set(kGuardedFlag | kBlockedFlag, false);
      pool_.Settle(before);
    }
    if (incoming.blocks[group] == kNoBlock) continue;
    pool_.Mut(incoming.blocks[group]).Set(kVariantFlag, false);
    const bool blocked = !IsWindow(group) && tree_.Get(node).blockers > 0;
    pool_.Mut(incoming.blocks[group]).Set(kBlockedFlag, blocked);
    windows_.BlockPlaced(node, group);
    pool_.Settle(incoming.blocks[group]);
  }
  tree_.SetOwner(node, worker, incoming.sealer);
  if (other != kNoWorker) SetVariant(node, std::move(outgoing));
  GuardVariants(node);
  if (groups_.has_windows) windows_.LeafChanged(node);
}

void EngineCore::SetVariant(NodeId node, NodeVariant variant) {
  tree_.SetVariant(node, std::move(variant));
  GuardVariants(node);
}

void EngineCore::RemoveVariant(NodeId node, WorkerSlot worker) {
  tree_.RemoveVariant(node, worker);
  GuardVariants(node);
}

void EngineCore::ShrinkVariant(NodeId node, WorkerSlot worker, uint32_t group) {
  NodeVariant variant = *tree_.VariantOf(node, worker);
  variant.blocks[group] = kNoBlock;
  const bool empty = std::all_of(variant.blocks.begin(), variant.blocks.end(),
                                 [](BlockId block) { return block == kNoBlock; });
  if (empty) {
    RemoveVariant(node, worker);
  } else {
    SetVariant(node, std::move(variant));
  }
}

void EngineCore::GuardVariants(NodeId node) {
  if (tree_.IsRoot(node)) return;
  if (groups_.has_windows) windows_.ClosedChanged(node);
  const bool guard = tree_.Get(node).Has(kVariantsFlag) && !tree_.Get(node).leaf();
  for (uint32_t group = 0; group < groups(); ++group) {
    const BlockId block = tree_.BlockOf(node, group);
    if (IsWindow(group) || block == kNoBlock || pool_.Get(block).Has(kGuardedFlag) == guard) {
      continue;
    }
    pool_.Mut(block).Set(kGuardedFlag, guard);
    pool_.Settle(block);
  }
}

}  // namespace quire
