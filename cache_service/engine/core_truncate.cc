// Truncate: a sequence back to a shorter length (P8, P10).
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cache_service/engine/engine_core.h"

namespace quire {

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
    const uint32_t first = groups_.FirstNeeded(group, length, options_.window_slack_tokens);
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
      const uint32_t first = groups_.FirstNeeded(group, tokens);
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
    const uint32_t first = groups_.FirstNeeded(group, length, options_.window_slack_tokens);
    const uint32_t hard_first = groups_.FirstNeeded(group, length);
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
  if (groups_.has_windows) {
    if (Error lost = CheckWindow(*sequence, op.length); !lost.ok()) return lost;
  }
  Touch(*sequence);
  if (groups_.has_windows) ReattachWindow(*sequence, op.length);
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
  sequence.digests = CutDigests(sequence.digests, length);
  sequence.length = sequence.reserved = sequence.given = length;
  sequence.committed = std::min(sequence.committed, length);
  sequence.length_before_step = std::min(sequence.length_before_step, length);
}

// Tokens that enter later are plain.
SharedDigests EngineCore::CutDigests(const SharedDigests& digests, uint32_t length) {
  if (digests == nullptr || digests->back().end <= length) return digests;
  std::vector<DigestRange> kept;
  for (const DigestRange& range : *digests) {
    if (range.start >= length) break;
    kept.push_back(range);
    kept.back().end = std::min(range.end, length);
  }
  if (kept.empty()) return nullptr;
  return std::make_shared<const std::vector<DigestRange>>(std::move(kept));
}

}  // namespace quire
