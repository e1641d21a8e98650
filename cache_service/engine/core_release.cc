// Truncate and finish: what a sequence lets go (P8, P9, E2, E10).
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cache_service/engine/block_pool_chains.h"
#include "cache_service/engine/engine_core.h"

namespace quire {

// --- Truncate ---

// The tree's block for an entry that has left the table.
BlockId EngineCore::LeftAt(const Sequence& sequence, uint32_t group, uint32_t index) const {
  NodeId node = sequence.publishes ? sequence.node : kNoNode;
  for (uint32_t depth = sequence.sealed; node != kNoNode && depth > index + 1; --depth) {
    node = tree_.Get(node).parent;
  }
  return node == kNoNode ? kNoBlock : VisibleBlock(node, group, sequence.worker);
}

// Available blocks that come back into the windows behind `length`, less those that the truncate
// makes available.
uint64_t EngineCore::TakenBack(const Sequence& sequence, uint32_t length) const {
  uint64_t taken = 0;
  uint64_t given = 0;
  for (uint32_t group = 0; group < groups(); ++group) {
    const std::vector<BlockId>& table = sequence.tables[group];
    const uint32_t first = FirstNeededBlock(options_.groups[group].window_tokens, length,
                                            options_.block_tokens, options_.window_slack_tokens);
    for (uint32_t i = std::min(BlocksFor(length), sequence.window_start[group]); i-- > first;) {
      const BlockId block = LeftAt(sequence, group, i);
      if (block == kNoBlock) break;
      taken += pool_.Get(block).place != Place::kNone;
    }
    for (uint32_t i = BlocksFor(length); i < table.size(); ++i) {
      if (table[i] == kNoBlock) continue;
      given += pool_.Get(table[i]).table_refs == 1 && pool_.Get(table[i]).holds == 0;
    }
  }
  return taken - std::min(taken, given);
}

// A shorter sequence needs the blocks in the window behind its new length; those that left the
// table may still be in the tree. They come back like a hit: not if they are promised to others.
Error EngineCore::CheckWindow(const Sequence& sequence, uint32_t length) {
  const auto missing_before = [&](uint32_t tokens, uint32_t& missing) {
    for (uint32_t group = 0; group < groups(); ++group) {
      if (!IsWindow(group)) continue;
      const uint32_t first =
          FirstNeededBlock(options_.groups[group].window_tokens, tokens, options_.block_tokens);
      for (uint32_t i = std::min(BlocksFor(tokens), sequence.window_start[group]); i-- > first;) {
        if (LeftAt(sequence, group, i) == kNoBlock) {
          missing = i;
          return true;
        }
      }
    }
    return false;
  };
  uint32_t missing = 0;
  if (!missing_before(length, missing))
    return claimed_ == 0 ? Error() : CheckTaken(sequence, length);
  uint32_t longest = missing * options_.block_tokens;
  while (longest > 0 && missing_before(longest, missing)) longest = missing * options_.block_tokens;
  return MakeError(Reason::kWindowLost,
                   absl::StrCat("window block ", missing, " is gone; length ", longest, " works"),
                   {{"length", length}, {"longest_length", longest}});
}

Error EngineCore::CheckTaken(const Sequence& sequence, uint32_t length) {
  const uint64_t own = sequence.claim ? sequence.claim->remaining : 0;
  const uint64_t taken = TakenBack(sequence, length);
  if (taken <= Headroom(*worker_, own)) return {};
  ++counters_.shortages;
  return ShortageError({.needed = taken, .own_claim = own});
}

void EngineCore::ReattachWindow(Sequence& sequence, uint32_t length) {
  for (uint32_t group = 0; group < groups(); ++group) {
    if (!IsWindow(group)) continue;
    const uint32_t first = FirstNeededBlock(options_.groups[group].window_tokens, length,
                                            options_.block_tokens, options_.window_slack_tokens);
    const uint32_t hard_first =
        FirstNeededBlock(options_.groups[group].window_tokens, length, options_.block_tokens);
    const uint32_t end = std::min(BlocksFor(length), sequence.window_start[group]);
    // Without a path in the tree nothing comes back; CheckWindow has seen that nothing must.
    NodeId node = sequence.publishes ? sequence.node : kNoNode;
    for (uint32_t depth = sequence.sealed; node != kNoNode && depth > end; --depth) {
      node = tree_.Get(node).parent;
    }
    uint32_t start = end;
    for (uint32_t i = end; node != kNoNode && i-- > first; node = tree_.Get(node).parent) {
      const BlockId block = VisibleBlock(node, group, sequence.worker);
      if (block == kNoBlock && i < hard_first) break;
      sequence.tables[group][i] = block;
      Ref(block, sequence.worker);
      start = i;
    }
    for (uint32_t i = start; i < end; ++i) {
      AppendEntry(sequence, group, i, sequence.tables[group][i]);
    }
    sequence.window_start[group] = start;
  }
}

Error EngineCore::Truncate(const TruncateOp& op) {
  Error error;
  Sequence* sequence = FindAt(op.sequence, op.start_length, error);
  if (sequence == nullptr) return error;
  if (op.length > sequence->length) {
    return InvalidArgument("length", "beyond the length of the sequence",
                           {{"limit", sequence->length}, {"given", op.length}});
  }
  if (has_windows_) {
    if (Error lost = CheckWindow(*sequence, op.length); !lost.ok()) return lost;
  }
  Touch(*sequence);
  if (has_windows_) ReattachWindow(*sequence, op.length);
  Shorten(*sequence, op.length);
  if (sequence->claim) UpdateClaim(sequence->claim, 0);
  return {};
}

void EngineCore::Shorten(Sequence& sequence, uint32_t length) {
  ReleaseTable(sequence, BlocksFor(length));
  const uint32_t sealed = std::min(sequence.sealed, length / options_.block_tokens);
  if (length < sequence.token_base) {
    // The tokens of the block that is now partial are in the tree.
    NodeId node = sequence.node;
    for (uint32_t depth = sequence.sealed; node != kNoNode && depth > sealed + 1; --depth) {
      node = tree_.Get(node).parent;
    }
    sequence.token_base = sealed * options_.block_tokens;
    const uint32_t count = length - sequence.token_base;
    if (node != kNoNode && count > 0) {
      const TokenId* tokens = tree_.ContentOf(node).tokens;
      sequence.tokens.assign(tokens, tokens + count);
    } else {
      sequence.tokens.assign(count, 0);
    }
  } else {
    sequence.tokens.resize(length - sequence.token_base);
  }
  NodeId end = sequence.node;
  for (; sequence.sealed > sealed; --sequence.sealed) {
    if (end != kNoNode) end = tree_.Get(end).parent;
  }
  StandOn(sequence, end);
  for (uint32_t& start : sequence.window_start) start = std::min(start, BlocksFor(length));
  CutDigests(sequence, length);
  sequence.length = sequence.reserved = sequence.given = length;
  sequence.committed = std::min(sequence.committed, length);
  sequence.length_before_step = std::min(sequence.length_before_step, length);
}

// Tokens that enter later are plain.
void EngineCore::CutDigests(Sequence& sequence, uint32_t length) {
  for (DigestRange& range : sequence.digests) range.end = std::min(range.end, length);
  std::erase_if(sequence.digests,
                [](const DigestRange& range) { return range.start >= range.end; });
}

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
  const std::vector<BlockId>& table = sequence.tables[full_group_];
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
