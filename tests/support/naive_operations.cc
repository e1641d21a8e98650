// The operations of a step in the naive model.
#include <algorithm>
#include <variant>

#include "tests/support/naive_engine.h"

namespace quire::testing {
namespace {

template <typename... Callables>
struct Overloaded : Callables... {
  using Callables::operator()...;
};

template <typename... Callables>
Overloaded(Callables...) -> Overloaded<Callables...>;

SequenceHandle HandleOf(const Operation& operation) {
  return std::visit(Overloaded{[](const AdvanceOp&) { return SequenceHandle{0}; },
                               [](const auto& op) { return op.sequence; }},
                    operation);
}

Error NotFound(SequenceHandle handle) {
  return MakeError(Reason::kSequenceNotFound, "", {{"sequence", handle}});
}

}  // namespace

// An operation that fails leaves no trace but its failure, and perhaps a waiting sequence.
void NaiveEngine::Run(uint32_t index, const Operation& operation) {
  if (const auto* advance = std::get_if<AdvanceOp>(&operation)) {
    std::span<const TokenId> tokens = advance->tokens;
    for (uint32_t entry = 0; entry < advance->sequences.size(); ++entry) {
      const size_t count = advance->token_counts.empty() ? 1 : advance->token_counts[entry];
      AdvanceEntry(index, *advance, entry, tokens.first(count));
      tokens = tokens.subspan(count);
    }
    return;
  }
  const NaivePool pool = pool_;
  const auto hints = hints_;
  const auto copy_hints = copy_hints_;
  const Outcome outcome = std::visit(Overloaded{[&](const BeginOp& op) { return Begin(index, op); },
                                                [&](const AdvanceOp&) { return Outcome(); },
                                                [&](const ExtendOp& op) { return Extend(op); },
                                                [&](const CommitOp& op) { return Commit(op); },
                                                [&](const ForkOp& op) { return Fork(index, op); },
                                                [&](const TruncateOp& op) { return Truncate(op); },
                                                [&](const FinishOp& op) { return Finish(op); }},
                                     operation);
  if (outcome.error.ok()) return;
  auto waiters = pool_.waiters;
  pool_ = pool;
  pool_.waiters = std::move(waiters);
  hints_ = hints;
  copy_hints_ = copy_hints;
  Fail(index, 0, HandleOf(operation), outcome);
}

void NaiveEngine::Fail(uint32_t index, uint32_t entry, SequenceHandle handle,
                       const Outcome& outcome) {
  const NaiveSequence* sequence = FindSequence(handle);
  const uint32_t reserved = sequence == nullptr ? 0 : sequence->reserved;
  result_.failures.push_back({index, entry, outcome.part, reserved, outcome.error});
}

Error NaiveEngine::CheckLength(SequenceHandle handle, uint32_t start_length) {
  const NaiveSequence* sequence = FindSequence(handle);
  if (sequence == nullptr) return NotFound(handle);
  if (sequence->length() == start_length) return {};
  return MakeError(Reason::kLengthMismatch, "", {{"length", sequence->length()}});
}

NaiveEngine::Outcome NaiveEngine::Begin(uint32_t index, const BeginOp& op) {
  if (FindSequence(op.sequence) != nullptr) return {MakeError(Reason::kSequenceExists, "")};
  if (op.tokens.empty() || op.tokens.size() > options_.max_sequence_tokens ||
      !ValidateRetention(op.retention).ok() ||
      !ValidateDigests(op.digests, op.tokens.size()).ok()) {
    return {MakeError(Reason::kInvalidArgument, "")};
  }
  const auto total = static_cast<uint32_t>(op.tokens.size());
  NaiveSequence sequence;
  sequence.parts = op.namespace_parts;
  sequence.space = SpaceOf(worker(actor_).model_fingerprint, op.namespace_parts);
  sequence.items = ItemsOf(op.tokens, op.digests);
  sequence.retention = op.retention;
  sequence.tables.resize(options_.groups.size());
  const Hit hit = Lookup(sequence.items, sequence.space, actor_);
  uint32_t reused = 0;
  if (!op.skip_cache_read) {
    const uint32_t longest = LongestHit(hit, total);
    const uint32_t kept = longest - std::min(longest, op.recompute_tail);
    reused = LongestHit(hit, std::min(total - 1, kept));
  }
  const uint32_t allocate = op.allocate_tokens.value_or(total);
  Error refusal;
  bool had_partial = false;
  while (true) {
    const uint32_t length = std::min(total, reused + std::min(total, allocate));
    const Error error = Refusal(NeedOf(hit, sequence, op.sequence, reused, length), kNotBorn);
    if (error.ok()) {
      StartSequence(index, op.sequence, std::move(sequence), hit, reused, length);
      return {};
    }
    // The numbers are those of the shortest hit that may be tried: without allocate_tokens a whole
    // block given up would be needed again.
    if (refusal.ok() || had_partial || op.allocate_tokens.has_value()) refusal = error;
    had_partial = reused % options_.block_tokens != 0;
    if (reused == 0) return {refusal};
    // Give up the partial block, then whole blocks from the end.
    reused = LongestWholeHit(hit, reused - 1);
  }
}

void NaiveEngine::AdvanceEntry(uint32_t index, const AdvanceOp& op, uint32_t entry,
                               std::span<const TokenId> tokens) {
  const SequenceHandle handle = op.sequences[entry];
  if (Error error = CheckLength(handle, op.start_lengths[entry]); !error.ok()) {
    return Fail(index, entry, handle, {error});
  }
  NaiveSequence& sequence = *FindSequence(handle);
  const auto count = static_cast<uint32_t>(tokens.size());
  const bool has_rest = sequence.items.size() > sequence.length();
  if (count > 0 && (has_rest || sequence.length() + count > options_.max_sequence_tokens)) {
    return Fail(index, entry, handle, {MakeError(Reason::kInvalidArgument, "")});
  }
  CommitTo(handle, ComputedLength(sequence));
  const uint32_t length = sequence.length() + count;
  Outcome outcome = Grow(handle, length, 0, true);
  outcome.part = AdvancePart::kEnter;
  if (!outcome.error.ok()) return Fail(index, entry, handle, outcome);
  sequence.items += ItemsOf(tokens, {});
  const uint32_t ahead = op.aheads.empty() ? op.ahead : op.aheads[entry];
  const uint64_t slots = std::min<uint64_t>(uint64_t{length} + ahead, options_.max_sequence_tokens);
  outcome = Grow(handle, length, static_cast<uint32_t>(slots), false);
  outcome.part = AdvancePart::kAhead;
  if (!outcome.error.ok()) Fail(index, entry, handle, outcome);
}

NaiveEngine::Outcome NaiveEngine::Extend(const ExtendOp& op) {
  if (Error error = CheckLength(op.sequence, op.start_length); !error.ok()) return {error};
  const NaiveSequence& sequence = *FindSequence(op.sequence);
  const uint32_t slots = std::min(op.slots, options_.max_sequence_tokens);
  const auto given = static_cast<uint32_t>(sequence.items.size());
  return Grow(op.sequence, std::max(sequence.length(), std::min(slots, given)), slots, true);
}

NaiveEngine::Outcome NaiveEngine::Commit(const CommitOp& op) {
  if (Error error = CheckLength(op.sequence, op.start_length); !error.ok()) return {error};
  const NaiveSequence& sequence = *FindSequence(op.sequence);
  if (op.committed_length > sequence.length() || op.committed_length < sequence.committed) {
    return {MakeError(Reason::kInvalidArgument, "")};
  }
  if (op.committed_length > std::max(sequence.committed, ComputedLength(sequence)))
    return {MakeError(Reason::kNotComputed, "")};
  CommitTo(op.sequence, op.committed_length);
  return {};
}

NaiveEngine::Outcome NaiveEngine::Fork(uint32_t index, const ForkOp& op) {
  if (Error error = CheckLength(op.sequence, op.start_length); !error.ok()) return {error};
  std::set<SequenceHandle> children;
  for (const SequenceHandle child : op.children) {
    if (FindSequence(child) != nullptr || !children.insert(child).second) {
      return {MakeError(Reason::kSequenceExists, "")};
    }
  }
  if (children.empty()) return {MakeError(Reason::kInvalidArgument, "")};
  NaiveSequence& parent = *FindSequence(op.sequence);
  const uint32_t shared = std::max(parent.committed, ComputedLength(parent));
  if (shared == 0) return {MakeError(Reason::kNotComputed, "")};
  const bool copies = shared % options_.block_tokens > 0 && parent.reserved > parent.length();
  if (copies) {
    // Judged and taken before the commit, which may free duplicates and hold idle blocks.
    const Need need{static_cast<uint32_t>(children.size() * options_.groups.size()), {}, false};
    if (Error error = Refusal(need, parent.birth); !error.ok()) return {error};
  }
  parent.items.resize(parent.length());
  for (const SequenceHandle child : op.children) AddChild(op.sequence, child, shared);
  if (copies) CopyTails(op.sequence, op.children, shared);
  CommitTo(op.sequence, shared);
  for (const SequenceHandle child : op.children) ShareTables(op.sequence, child, copies);
  result_.forks.push_back({index, parent.committed});
  return {};
}

NaiveEngine::Outcome NaiveEngine::Truncate(const TruncateOp& op) {
  if (Error error = CheckLength(op.sequence, op.start_length); !error.ok()) return {error};
  NaiveSequence& sequence = *FindSequence(op.sequence);
  if (op.length > sequence.length()) return {MakeError(Reason::kInvalidArgument, "")};
  uint32_t longest = op.length;
  while (!WindowIsThere(sequence, longest)) --longest;
  if (longest < op.length) {
    return {MakeError(Reason::kWindowLost, "", {{"longest_length", longest}})};
  }
  ReattachWindows(op.sequence, op.length);
  sequence.items.resize(op.length);
  sequence.entered.resize(op.length);
  sequence.committed = std::min(sequence.committed, op.length);
  sequence.reserved = op.length;
  CutTables(op.sequence, BlocksFor(op.length));
  return {};
}

NaiveEngine::Outcome NaiveEngine::Finish(const FinishOp& op) {
  const NaiveSequence* sequence = FindSequence(op.sequence);
  if (sequence == nullptr) return {NotFound(op.sequence)};
  if (!ValidateRetention(op.retention).ok()) return {MakeError(Reason::kInvalidArgument, "")};
  const NaiveSequence ended = *sequence;
  pool_.waiters.erase(ended.birth);
  ApplyRetention(ended, op.retention);
  CutTables(op.sequence, 0);
  pool_.sequences.erase({actor_, op.sequence});
  if (op.drop) DropSealed(ended);
  return {};
}

}  // namespace quire::testing
