// Content becomes public, and tables turn to equal content that is there already (P5, P6).
#include <algorithm>

#include "cache_service/engine/engine_core.h"

namespace quire {

// The step that sealed the block is complete: the content becomes public, unless another worker's
// is.
void EngineCore::Publish(BlockId block, WorkerSlot worker) {
  const NodeId node = pool_.Get(block).node;
  if (!pool_.Get(block).Has(kVariantFlag)) {
    if (pool_.plain()) {
      tree_.SetOwner(node, kNoWorker, tree_.Get(node).sealer);
      pool_.EndPending(block);
      WantChecksum(block);
    } else {
      PublishNode(node, worker);
    }
    return;
  }
  if (tree_.Get(node).owner == kNoWorker) {
    PublishVariant(node, block, worker);
  } else {
    SwapVariantIn(node, worker);
    PublishNode(node, worker);
  }
}

// A block that took a lost one's place in a later step waits for that step beside the node.
void EngineCore::PublishNode(NodeId node, WorkerSlot worker) {
  tree_.SetOwner(node, kNoWorker, tree_.Get(node).sealer);
  const auto completed = static_cast<uint32_t>(workers_[worker]->completed_step);
  std::vector<BlockId> later;
  for (uint32_t group = 0; group < groups(); ++group) {
    const BlockId block = tree_.BlockOf(node, group);
    if (block == kNoBlock) continue;
    if (static_cast<int32_t>(pool_.Get(block).seal_step - completed) > 0) {
      later.resize(groups(), kNoBlock);
      later[group] = block;
      tree_.SetBlock(node, group, kNoBlock);
      pool_.Mut(block).Set(kVariantFlag, true);
      pool_.Mut(block).Set(kGuardedFlag, false);
      pool_.Settle(block);
      continue;
    }
    pool_.Mut(block).Set(kPendingFlag, false);
    pool_.Settle(block);
    WantChecksum(block);
  }
  if (!later.empty()) SetVariant(node, {worker, 0, std::move(later)});
}

void EngineCore::PublishVariant(NodeId node, BlockId block, WorkerSlot worker) {
  const uint32_t group = pool_.Get(block).group;
  ShrinkVariant(node, worker, group);
  const BlockId existing = tree_.BlockOf(node, group);
  Block& record = pool_.Mut(block);
  record.Set(kPendingFlag | kVariantFlag, false);
  if (existing == kNoBlock) {
    tree_.SetBlock(node, group, block);
    if (groups_.has_windows) windows_.ClosedChanged(node);
    windows_.BlockPlaced(node, group);
    pool_.Settle(block);
    WantChecksum(block);
    return;
  }
  // What hangs below was released with this block: it keeps the existing one as long.
  const StepNumber step = pool_.FenceStep(block, worker);
  if (step > pool_.FenceStep(existing, worker)) {
    pool_.Fence(existing, worker, step);
    LogAt(*workers_[worker], step, existing, LogKind::kReleased);
    pool_.Settle(existing);
  }
  pool_.LeaveNode(block);
  pool_.Settle(block);
  if (record.table_refs > 0) Remap(block, existing, worker, tree_.Get(node).depth, nullptr);
}

// Every table of the worker that holds `from` (at `index`) holds `to` from now on.
void EngineCore::Remap(BlockId from, BlockId to, WorkerSlot worker, uint32_t index,
                       Sequence* sealer) {
  WorkerState& state = *workers_[worker];
  const uint32_t group = pool_.Get(from).group;
  const bool in_step = out_ != nullptr && worker_ == &state;
  uint32_t left = pool_.RefsOf(from, worker);
  const auto holds = [&](const Sequence& sequence) {
    const std::vector<BlockId>& table = sequence.tables[group];
    return index < table.size() && table[index] == from;
  };
  // Mostly the sequence that just sealed its block is the only holder.
  std::vector<Sequence*> holders;
  if (sealer != nullptr && left == 1 && holds(*sealer)) {
    holders.push_back(sealer);
  } else {
    for (const auto& [handle, owned] : state.sequences) {
      if (holds(*owned)) holders.push_back(owned.get());
    }
    std::sort(holders.begin(), holders.end(),
              [](const Sequence* a, const Sequence* b) { return a->serial < b->serial; });
  }
  for (Sequence* holder : holders) {
    Sequence& sequence = *holder;
    std::vector<BlockId>& table = sequence.tables[group];
    const SequenceHandle handle = sequence.handle;
    --left;
    SaveSequence(sequence);
    table[index] = to;
    Ref(to, worker);
    if (in_step) {
      AppendEntry(sequence, group, index, to);
      Unref(from, worker, step_);
    } else {
      state.unreported.push_back({handle, group, index, to});
      Unref(from, worker, kUnreportedStep);
      if (left == 0) state.unreported_releases.push_back(from);
    }
  }
  ++counters_.blocks_deduplicated;
}

}  // namespace quire
