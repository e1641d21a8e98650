// Commit, seal and deduplicate (P5, P6), and window exits (E7).
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
  if (groups_.has_windows) LeaveWindows(sequence);
}

// The common block: content that goes on from a leaf of a plain pool. What SealNext does then, for
// tokens alone. False: not that case.
bool EngineCore::SealPlainTip(Sequence& sequence) {
  const NodeId above = sequence.node;
  const Node& parent = tree_.Get(above);
  const BlockId block = sequence.tables[0][sequence.sealed];
  const Block& record = pool_.Get(block);
  if (!pool_.plain() || !parent.leaf() || parent.Has(kVariantsFlag) || tree_.IsRoot(above) ||
      BlockId{parent.block} == kNoBlock || pool_.Get(BlockId{parent.block}).table_refs == 0 ||
      record.state != BlockState::kFilling || record.flags != 0 || sequence.digests != nullptr ||
      !sequence.retention.empty()) {
    return false;
  }
  const uint32_t first = sequence.sealed * options_.block_tokens - sequence.token_base;
  sequence.node = tree_.AddChild(above, {sequence.tokens.data() + first, options_.block_tokens, {}},
                                 sequence.worker, sequence.SealerId());
  tree_.SetBlock(sequence.node, 0, block);
  tree_.AddBlockersPlainly(above, 1);
  pool_.SealHeld(block, sequence.node, sequence.worker, static_cast<uint32_t>(step_),
                 BlockId{parent.block});
  Log(block, LogKind::kSealed);
  ++counters_.blocks_sealed;
  ++sequence.sealed;
  return true;
}

void EngineCore::SealNext(Sequence& sequence) {
  if (SealPlainTip(sequence)) return;
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
  if (!new_node) return;
  const NodeId parent = tree_.Get(node).parent;
  if (groups_.has_windows || tree_.Get(parent).Has(kVariantsFlag)) GuardVariants(parent);
  if (!groups_.has_windows) return;
  windows_.LeafChanged(parent);
  windows_.LeafChanged(node);
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
    if (new_node) windows_.BlockPlaced(node, group);
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
      windows_.LeafChanged(node);
      windows_.BlockPlaced(node, group);
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

void EngineCore::LeaveWindows(Sequence& sequence) {
  const uint32_t computed =
      Injected(Fault::kWindowExitByLength) ? sequence.length : sequence.committed;
  for (uint32_t group = 0; group < groups(); ++group) {
    if (!IsWindow(group)) continue;
    std::vector<BlockId>& table = sequence.tables[group];
    const uint32_t first =
        std::min(groups_.FirstNeeded(group, computed, options_.window_slack_tokens),
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
