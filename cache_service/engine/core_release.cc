// Releasing table entries, and finish (P9, E2, E10).
#include <utility>

#include "absl/strings/str_cat.h"
#include "cache_service/engine/block_pool_chains.h"
#include "cache_service/engine/engine_core.h"

namespace quire {

// --- Releasing table entries ---

void EngineCore::ReleaseEntry(Sequence& sequence, uint32_t group, uint32_t index) {
  const BlockId block = sequence.tables[group][index];
  if (block == kNoBlock) return;
  Unref(block, sequence.worker, out_ != nullptr ? step_ : 0);
}

void EngineCore::ReleasePlainTable(Sequence& sequence, uint32_t from_index) {
  const std::vector<BlockId>& table = sequence.tables[0];
  const StepNumber step = out_ != nullptr ? step_ : 0;
  const auto above = [&](size_t i) {
    const NodeId parent = tree_.Get(pool_.Get(table[i]).node).parent;
    if (i == 0) return tree_.IsRoot(parent);
    const Block& before = pool_.Get(table[i - 1]);
    return before.node == parent && !before.Has(kVariantFlag);
  };
  const auto drop_blocker = [&](size_t i) {
    return i > 0 && tree_.AddBlockersPlainly(pool_.Get(table[i - 1]).node, -1) == 0;
  };
  pool_.ReleaseChain(
      table, from_index, sequence.worker, step, above, drop_blocker,
      [&](size_t i) { Unref(table[i], sequence.worker, step); },
      [&](size_t i) { Log(table[i], LogKind::kReleased); });
}

// From the tail to the root, so that the deepest block is the oldest; at one position the
// full-attention blocks go before the window blocks.
void EngineCore::ReleaseTable(Sequence& sequence, uint32_t from_index) {
  WorkerState& worker = *workers_[sequence.worker];
  const auto size = static_cast<uint32_t>(sequence.tables[0].size());
  if (pool_.plain()) ReleasePlainTable(sequence, from_index);
  for (uint32_t i = pool_.plain() ? from_index : size; i-- > from_index;) {
    for (const bool window : {false, true}) {
      for (uint32_t group = 0; group < groups(); ++group) {
        if (IsWindow(group) == window) ReleaseEntry(sequence, group, i);
      }
    }
  }
  if (from_index >= size) return;
  for (std::vector<BlockId>& table : sequence.tables) table.resize(from_index);
  journal_.Save(worker.table_entries);
  worker.table_entries -= uint64_t{size - from_index} * groups();
}

// --- Finish ---

Error EngineCore::Finish(const FinishOp& op) {
  Sequence* sequence = Find(op.sequence);
  if (sequence == nullptr) {
    return MakeError(Reason::kSequenceNotFound, absl::StrCat("no sequence ", op.sequence),
                     {{"sequence", op.sequence}});
  }
  if (Error error = ValidateRetention(op.retention); !error.ok()) return error;
  SaveSequence(*sequence);
  if (!op.retention.empty()) {
    sequence->retention = op.retention;
    for (uint32_t group = 0; group < groups(); ++group) {
      const auto size = static_cast<uint32_t>(sequence->tables[group].size());
      for (uint32_t i = 0; i < size; ++i) {
        const BlockId block = sequence->tables[group][i];
        if (block != kNoBlock && pool_.Get(block).node != kNoNode) {
          ApplyRetention(*sequence, block, i);
        }
      }
    }
  }
  if (waiters_.contains(sequence->serial)) ++counters_.preemptions;
  ++counters_.finishes;
  EndSequence(*sequence, op.drop);
  return {};
}

// The deepest node of the path that is still in the tree: content of the sequence may have been
// taken out.
NodeId EngineCore::LastPathNode(const Sequence& sequence) const {
  if (sequence.publishes) return sequence.node;
  const std::vector<BlockId>& table = sequence.tables[groups_.full];
  for (uint32_t i = sequence.committed / options_.block_tokens; i-- > 0;) {
    if (table[i] == kNoBlock) return kNoNode;
    if (const NodeId node = pool_.Get(table[i]).node; node != kNoNode) return node;
  }
  return kNoNode;
}

void EngineCore::EndSequence(Sequence& sequence, bool drop) {
  WorkerState& worker = *workers_[sequence.worker];
  RemoveWaiter(sequence);
  NodeId node = drop ? LastPathNode(sequence) : kNoNode;
  ReleaseTable(sequence, 0);
  while (node != kNoNode && !tree_.IsRoot(node)) {
    const NodeId parent = tree_.Get(node).parent;
    StandOn(sequence, parent);
    // Without blocks it went when nobody stood on it any more.
    if (tree_.Get(node).Has(kUsedNodeFlag) && !DropNode(node, sequence)) break;
    node = parent;
  }
  StandOn(sequence, kNoNode);
  LeaveClaim(sequence);
  tree_.ReleaseRoot(sequence.root);
  journal_.Save(live_sequences_);
  --live_sequences_;
  const auto found = worker.sequences.find(sequence.handle);
  if (journal_.active()) {
    auto kept = std::make_shared<SequenceStore::Owned>(std::move(found->second));
    journal_.OnRollback([&worker, kept] {
      const SequenceHandle handle = (*kept)->handle;
      worker.sequences[handle] = std::move(*kept);
    });
  }
  worker.sequences.erase(found);
}

// Takes out what the sequence sealed first at the node, if nothing else holds it and nothing
// continues it.
bool EngineCore::DropNode(NodeId node, const Sequence& sequence) {
  const Node& record = tree_.Get(node);
  const NodeVariant* variant = tree_.VariantOf(node, sequence.worker);
  const uint32_t sealer = variant != nullptr ? variant->sealer : record.sealer;
  if (sealer != sequence.SealerId() || !record.leaf()) return false;
  const bool foreign = record.owner != kNoWorker && record.owner != sequence.worker;
  if (variant == nullptr && foreign) return false;
  std::vector<BlockId> blocks;
  for (uint32_t group = 0; group < groups(); ++group) {
    const BlockId block = variant != nullptr ? variant->blocks[group] : tree_.BlockOf(node, group);
    if (block == kNoBlock) continue;
    const Block& held = pool_.Get(block);
    if (held.table_refs > 0 || held.holds > 0) return false;
    if (held.fence_worker != kNoWorker && held.fence_worker != sequence.worker) return false;
    blocks.push_back(block);
  }
  const bool is_variant = variant != nullptr;
  for (const BlockId block : blocks) {
    CountEviction(pool_.Get(block), EvictionReason::kDropped);
    if (!is_variant) tree_.SetBlock(node, pool_.Get(block).group, kNoBlock);
    TakeOut(block);
  }
  if (is_variant) {
    RemoveVariant(node, sequence.worker);
  } else {
    RemoveNode(node);
  }
  return true;
}

}  // namespace quire
