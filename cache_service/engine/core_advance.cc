// Advance: the decode step of many sequences (P5, P9).
#include <algorithm>

#include "cache_service/engine/engine_core.h"

namespace quire {
namespace {

template <typename T>
void MakeRoom(size_t count, std::vector<T>& list) {
  const size_t wanted = list.size() + count;
  if (wanted > list.capacity()) list.reserve(std::max(wanted, 2 * list.capacity()));
}

// The common entry, without windows and journal: one token into a slot that is held, nothing to
// seal, and the slots ahead are in the same block. What AdvanceEntry does then, without the
// questions.
struct InPlace {
  StepNumber step;
  uint32_t block_shift;
  uint32_t max_sequence_tokens;

  // False: not that case.
  bool Advance(DecodeState& sequence, uint32_t start_length, TokenId token, uint32_t ahead) const {
    const uint32_t length = sequence.length;
    const uint32_t entered = sequence.touched_step == step ? sequence.length_before_step : length;
    const uint32_t committed = std::max(sequence.committed, entered);
    const uint64_t slots = uint64_t{length} + 1 + ahead;
    const uint32_t reserved = sequence.reserved;
    const bool same_block = (slots - 1) >> block_shift <= (uint64_t{reserved} - 1) >> block_shift;
    const bool seals = committed >> block_shift != sequence.committed >> block_shift;
    if (length != start_length || length < sequence.given || length + 1 >= reserved ||
        !same_block || slots > max_sequence_tokens || seals) {
      return false;
    }
    sequence.touched_step = step;
    sequence.length_before_step = entered;
    sequence.committed = committed;
    sequence.length = sequence.given = length + 1;
    sequence.reserved = std::max(reserved, static_cast<uint32_t>(slots));
    sequence.tokens.push_back(token);
    return true;
  }
};

}  // namespace

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
  const std::span<Sequence* const> sequences = FindAdvancing(op);
  const bool plain = !groups_.has_windows && !journal_.active();
  const InPlace in_place{step_, block_shift_, options_.max_sequence_tokens};
  // Copies, because what is written below could be theirs for all that the compiler knows.
  const AdvanceOp columns = op;
  size_t first = 0;
  for (uint32_t entry = 0; entry < entries; ++entry) {
    const uint32_t count = columns.token_counts.empty() ? 1 : columns.token_counts[entry];
    const uint32_t ahead = columns.aheads.empty() ? columns.ahead : columns.aheads[entry];
    Sequence* const sequence = sequences[entry];
    if (!plain || sequence == nullptr || count != 1 ||
        !in_place.Advance(*sequence, columns.start_lengths[entry], columns.tokens[first], ahead)) {
      AdvanceEntry(op, entry, columns.tokens.subspan(first, count), sequence);
    }
    first += count;
  }
}

// Finds all sequences and asks the processor for what each will touch: its token's place and, where
// it seals a block or takes one, the rest.
std::span<Sequence* const> EngineCore::FindAdvancing(const AdvanceOp& op) {
  AdvanceOrder& order = worker_->advance_order;
  order.Start(step_);
  if (journal_.active()) order.Forget();
  const std::span<Sequence* const> sequences =
      order.LookUp(op.sequences, worker_->slot, [this](SequenceHandle handle) {
        Sequence* const found = Find(handle);
        if (found != nullptr) found->Prefetch();
        return found;
      });
  leaving_.clear();
  const uint32_t in_block = options_.block_tokens - 1;
  const uint32_t ahead = op.ahead;
  for (Sequence* const sequence : sequences) {
    if (sequence == nullptr) continue;
    sequence->PrefetchTokens();
    // Mostly right, which is enough.
    const uint32_t length = sequence->length;
    const bool stays = (length & in_block) != 0 && ((length + ahead) & in_block) != 0 &&
                       length + 1 < sequence->reserved;
    if (stays) continue;
    sequence->PrefetchRest();
    leaving_.push_back(sequence);
  }
  PrefetchLeaving();
  MakeRoom(leaving_.size(), out_->runs);
  MakeRoom(leaving_.size(), out_->blocks);
  return sequences;
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

void EngineCore::AdvanceEntry(const AdvanceOp& op, uint32_t entry, std::span<const TokenId> tokens,
                              Sequence* found) {
  if (found == nullptr || found->length != op.start_lengths[entry]) {
    Error error;
    if (FindAt(op.sequences[entry], op.start_lengths[entry], error) == nullptr) {
      FailOperation(std::move(error), found, entry);
      return;
    }
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
