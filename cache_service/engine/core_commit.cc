// Commit, seal, publish and deduplicate (P5, P6), and window exits (E7).
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cache_service/engine/engine_core.h"
#include "cache_service/engine/fault.h"

namespace quire {

Error EngineCore::Commit(const CommitOp& op) {
  Error error;
  Sequence* sequence = FindAt(op.sequence, op.start_length, error);
  if (sequence == nullptr) return error;
  if (op.committed_length > sequence->length) {
    return InvalidArgument("committed_length", "beyond the length of the sequence",
                           {{"limit", sequence->length}, {"given", op.committed_length}});
  }
  if (op.committed_length < sequence->committed) {
    return InvalidArgument("committed_length", "below what is committed already",
                           {{"limit", sequence->committed}, {"given", op.committed_length}});
  }
  const uint32_t entered =
      sequence->touched_step == step_ ? sequence->length_before_step : sequence->length;
  if (op.committed_length > std::max(entered, sequence->committed)) {
    return MakeError(Reason::kNotComputed,
                     absl::StrCat("tokens from ", entered, " on entered in this step"),
                     {{"computed", entered}, {"committed_length", op.committed_length}});
  }
  Touch(*sequence);
  CommitTo(*sequence, op.committed_length);
  return {};
}

void EngineCore::CommitTo(Sequence& sequence, uint32_t committed) {
  if (committed <= sequence.committed) return;
  sequence.committed = committed;
  const uint32_t full_blocks = committed >> block_shift_;
  while (sequence.publishes && sequence.sealed < full_blocks) SealNext(sequence);
  const uint32_t base = sequence.sealed * options_.block_tokens;
  // Tokens that the tree has now go in larger pieces.
  if (base - sequence.token_base >= 1024 || base - sequence.token_base == sequence.tokens.size()) {
    sequence.tokens.erase(sequence.tokens.begin(),
                          sequence.tokens.begin() + (base - sequence.token_base));
    sequence.token_base = base;
  }
  if (has_windows_) LeaveWindows(sequence);
}

void EngineCore::SealNext(Sequence& sequence) {
  std::vector<DigestMark> marks;
  const ContentView content = ContentAt(sequence, sequence.sealed, marks);
  NodeId node = tree_.FindChild(sequence.node, content);
  const bool new_node = node == kNoNode;
  if (new_node) {
    node = tree_.AddChild(sequence.node, content, sequence.worker, sequence.SealerId());
  }
  const bool visible =
      !new_node && (Visible(node, sequence.worker) || Injected(Fault::kRemapOntoPending));
  if (visible) {
    MergeInto(sequence, node);
  } else {
    AddSealed(sequence, node, new_node);
  }
  StandOn(sequence, node);
  ++sequence.sealed;
  if (new_node) GuardVariants(tree_.Get(node).parent);
  if (has_windows_ && new_node) {
    LeafChanged(tree_.Get(node).parent);
    LeafChanged(node);
  }
}

// The worker's blocks become the node's, or a variant beside those of another worker.
void EngineCore::AddSealed(Sequence& sequence, NodeId node, bool new_node) {
  NodeVariant variant{sequence.worker, sequence.SealerId(), {}};
  if (!new_node) variant.blocks.assign(groups(), kNoBlock);
  for (uint32_t group = 0; group < groups(); ++group) {
    const BlockId block = sequence.tables[group][sequence.sealed];
    if (block == kNoBlock) continue;
    Block& record = pool_.Mut(block);
    record.node = node;
    record.owner = sequence.worker;
    record.seal_step = static_cast<uint32_t>(step_);
    record.Set(kSealedFlag | kPendingFlag, true);
    record.Set(kVariantFlag, !new_node);
    if (new_node) tree_.SetBlock(node, group, block);
    if (!new_node) variant.blocks[group] = block;
    ApplyRetention(sequence, block, sequence.sealed);
    if (new_node) BlockPlaced(node, group);
    pool_.Settle(block);
    Log(block, LogKind::kSealed);
    ++counters_.blocks_sealed;
  }
  if (!new_node) SetVariant(node, std::move(variant));
}

// The content is there already: the tables use the existing blocks, the duplicates go. A window
// block that the node has lost is taken over.
void EngineCore::MergeInto(Sequence& sequence, NodeId node) {
  const uint32_t index = sequence.sealed;
  for (uint32_t group = 0; group < groups(); ++group) {
    const BlockId own = sequence.tables[group][index];
    const BlockId existing = Injected(Fault::kRemapOntoPending)
                                 ? tree_.BlockOf(node, group)
                                 : VisibleBlock(node, group, sequence.worker);
    if (own == kNoBlock || own == existing) continue;
    if (existing != kNoBlock) {
      ApplyRetention(sequence, existing, index);
      Remap(own, existing, sequence.worker, index, &sequence);
      continue;
    }
    Block& record = pool_.Mut(own);
    record.node = node;
    record.owner = sequence.worker;
    record.seal_step = static_cast<uint32_t>(step_);
    record.Set(kSealedFlag | kPendingFlag, true);
    const bool in_node = tree_.Get(node).owner == sequence.worker;
    record.Set(kVariantFlag, !in_node);
    if (in_node) {
      tree_.SetBlock(node, group, own);
      LeafChanged(node);
      BlockPlaced(node, group);
    } else {
      const NodeVariant* before = tree_.VariantOf(node, sequence.worker);
      // Who gives a lost block back did not seal the content first.
      NodeVariant variant{sequence.worker, 0, std::vector<BlockId>(groups(), kNoBlock)};
      if (before != nullptr) variant = *before;
      variant.blocks[group] = own;
      SetVariant(node, std::move(variant));
    }
    ApplyRetention(sequence, own, index);
    pool_.Settle(own);
    Log(own, LogKind::kSealed);
    ++counters_.blocks_sealed;
  }
}

void EngineCore::ApplyRetention(const Sequence& sequence, BlockId block, uint32_t index) {
  if (sequence.retention.empty()) return;
  const auto retention = RetentionOfBlock(sequence.retention, index, options_.block_tokens);
  if (!retention) return;
  pool_.SetRetention(block, retention->priority,
                     retention->duration ? &*retention->duration : nullptr);
}

// --- Publishing ---

// The step that sealed the block is complete: the content becomes public, unless another worker's
// is.
void EngineCore::Publish(BlockId block, WorkerSlot worker) {
  const NodeId node = pool_.Get(block).node;
  if (!pool_.Get(block).Has(kVariantFlag)) {
    PublishNode(node, worker);
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
    if (has_windows_) ClosedChanged(node);
    BlockPlaced(node, group);
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
    BlockPlaced(node, group);
    pool_.Settle(incoming.blocks[group]);
  }
  tree_.SetOwner(node, worker, incoming.sealer);
  if (other != kNoWorker) SetVariant(node, std::move(outgoing));
  GuardVariants(node);
  if (has_windows_) LeafChanged(node);
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
  if (has_windows_) ClosedChanged(node);
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

// --- Windows ---

void EngineCore::LeaveWindows(Sequence& sequence) {
  const uint32_t computed =
      Injected(Fault::kWindowExitByLength) ? sequence.length : sequence.committed;
  for (uint32_t group = 0; group < groups(); ++group) {
    if (!IsWindow(group)) continue;
    std::vector<BlockId>& table = sequence.tables[group];
    const uint32_t first =
        std::min(FirstNeededBlock(options_.groups[group].window_tokens, computed,
                                  options_.block_tokens, options_.window_slack_tokens),
                 static_cast<uint32_t>(table.size()));
    for (uint32_t i = sequence.window_start[group]; i < first; ++i) {
      const BlockId block = table[i];
      table[i] = kNoBlock;
      sequence.window_start[group] = i + 1;
      if (block == kNoBlock) continue;
      AppendEntry(sequence, group, i, kNoBlock);
      Unref(block, sequence.worker, step_);
    }
  }
  if (sequence.claim) UpdateClaim(sequence.claim, 0);
}

}  // namespace quire
