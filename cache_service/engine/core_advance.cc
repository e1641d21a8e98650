// Advance: the decode step of many sequences (P5, P9).
#include <algorithm>

#include "cache_service/engine/engine_core.h"
#include "cache_service/engine/fault.h"

namespace quire {

void EngineCore::Advance(const AdvanceOp& op) {
  const size_t entries = op.sequences.size();
  uint64_t token_sum = op.token_counts.empty() ? entries : 0;
  for (const uint32_t count : op.token_counts) token_sum += count;
  if (op.start_lengths.size() != entries ||
      (!op.token_counts.empty() && op.token_counts.size() != entries) ||
      (!op.aheads.empty() && op.aheads.size() != entries) || op.tokens.size() != token_sum) {
    FailOperation(InvalidArgument("advance", "columns differ in length",
                                  {{"sequences", entries},
                                   {"start_lengths", op.start_lengths.size()},
                                   {"tokens", op.tokens.size()},
                                   {"token_counts", token_sum},
                                   {"aheads", op.aheads.size()}}),
                  nullptr);
    return;
  }
  size_t first = 0;
  FindAdvancing(op);
  for (uint32_t entry = 0; entry < entries; ++entry) {
    const uint32_t count = op.token_counts.empty() ? 1 : op.token_counts[entry];
    Sequence* const sequence = advancing_[entry];
    const uint32_t ahead = op.aheads.empty() ? op.ahead : op.aheads[entry];
    if (sequence == nullptr || count != 1 ||
        !AdvanceInPlace(*sequence, op.start_lengths[entry], op.tokens[first], ahead)) {
      AdvanceEntry(op, entry, op.tokens.subspan(first, count));
    }
    first += count;
  }
}

// Finds all sequences and asks the processor for them, each lying somewhere else, and for what
// those will touch that seal a block or take one.
void EngineCore::FindAdvancing(const AdvanceOp& op) {
  advancing_.clear();
  for (const SequenceHandle handle : op.sequences) {
    Sequence* const sequence = Find(handle);
    if (sequence != nullptr) sequence->Prefetch();
    advancing_.push_back(sequence);
  }
  leaving_.clear();
  for (Sequence* const sequence : advancing_) {
    if (sequence == nullptr) continue;
    sequence->PrefetchTokens();
    const uint32_t place = sequence->length & (options_.block_tokens - 1);
    const uint32_t last = (sequence->length + op.ahead) & (options_.block_tokens - 1);
    if (place == 0 || last == 0 || sequence->reserved <= sequence->length + 1) {
      __builtin_prefetch(&sequence->node);
      __builtin_prefetch(sequence->tables.data());
      leaving_.push_back(sequence);
    }
  }
  PrefetchLeaving();
}

// Pass by pass, for each needs what the one before has asked for.
void EngineCore::PrefetchLeaving() {
  for (const Sequence* const sequence : leaving_) {
    const std::vector<BlockId>& table = sequence->tables[0];
    __builtin_prefetch(table.data() + sequence->sealed);
    __builtin_prefetch(table.data() + table.size());
    tree_.PrefetchNear(sequence->node);
  }
  for (const Sequence* const sequence : leaving_) {
    const std::vector<BlockId>& table = sequence->tables[0];
    if (sequence->sealed < table.size()) pool_.Prefetch(table[sequence->sealed]);
    if (!table.empty()) pool_.Prefetch(table.back());
    // Their children, if they have any, and the block above.
    if (sequence->node != kNoNode) pool_.Prefetch(tree_.BlockOf(sequence->node, 0));
  }
  pool_.PrefetchFresh(leaving_.size());
}

// The common entry: one token into a slot that is held, nothing to seal, and the slots ahead are in
// the same block. What AdvanceEntry does then, without the questions. False: not that case.
bool EngineCore::AdvanceInPlace(Sequence& sequence, uint32_t start_length, TokenId token,
                                uint32_t ahead) {
  const uint32_t length = sequence.length;
  const uint32_t entered = sequence.touched_step == step_ ? sequence.length_before_step : length;
  const uint64_t slots =
      std::max<uint64_t>(uint64_t{length} + 1 + ahead, uint64_t{sequence.reserved});
  if (length != start_length || length < sequence.given || length >= sequence.reserved ||
      BlocksFor(slots) != BlocksFor(sequence.reserved) || slots > options_.max_sequence_tokens ||
      (entered >> block_shift_) > sequence.sealed || length + 1 == sequence.reserved ||
      has_windows_ || journal_.active()) {
    return false;
  }
  sequence.touched_step = step_;
  sequence.length_before_step = entered;
  sequence.committed = std::max(sequence.committed, entered);
  sequence.tokens.push_back(token);
  sequence.length = sequence.given = length + 1;
  sequence.reserved = static_cast<uint32_t>(slots);
  return true;
}

void EngineCore::AdvanceEntry(const AdvanceOp& op, uint32_t entry,
                              std::span<const TokenId> tokens) {
  Error error;
  Sequence* found = FindAt(op.sequences[entry], op.start_lengths[entry], error);
  if (found == nullptr) {
    const Sequence* existing = Find(op.sequences[entry]);
    FailOperation(std::move(error), existing, entry);
    return;
  }
  Sequence& sequence = *found;
  const uint64_t length = uint64_t{sequence.length} + tokens.size();
  if (!tokens.empty() && sequence.length < sequence.given) {
    FailOperation(InvalidArgument("tokens", "the begin's tokens have not all entered",
                                  {{"given", sequence.given}, {"length", sequence.length}}),
                  &sequence, entry);
    return;
  }
  if (length > options_.max_sequence_tokens) {
    FailOperation(InvalidArgument("tokens", "longer than max_sequence_tokens",
                                  {{"limit", options_.max_sequence_tokens}, {"given", length}}),
                  &sequence, entry);
    return;
  }
  Touch(sequence);
  CommitTo(sequence, std::max(sequence.committed, sequence.length_before_step));
  const auto new_length = static_cast<uint32_t>(length);
  if (new_length > sequence.reserved) {
    if (Error grown = Grow(sequence, new_length, true); !grown.ok()) {
      FailOperation(std::move(grown), &sequence, entry, AdvancePart::kEnter);
      return;
    }
  }
  for (const TokenId token : tokens) sequence.tokens.push_back(token);
  sequence.length = new_length;
  if (!tokens.empty()) sequence.given = new_length;
  const uint32_t ahead = op.aheads.empty() ? op.ahead : op.aheads[entry];
  const auto slots = static_cast<uint32_t>(
      std::min<uint64_t>(uint64_t{new_length} + ahead, options_.max_sequence_tokens));
  if (ahead == 0 || slots <= sequence.reserved) return;
  if (Error grown = Grow(sequence, slots, false); !grown.ok()) {
    FailOperation(std::move(grown), &sequence, entry, AdvancePart::kAhead);
  }
}

}  // namespace quire
