#include "tests/support/client_tables.h"

#include <algorithm>
#include <utility>

#include "gtest/gtest.h"

namespace quire::testing {
namespace {

// What distinguishes the token at `position` beside its id; "" outside all digest ranges.
std::string DigestExtra(const std::vector<DigestRange>& digests, uint32_t position) {
  for (const DigestRange& range : digests) {
    if (position < range.start || position >= range.end) continue;
    return std::string(range.digest.begin(), range.digest.end()) +
           std::to_string(position - range.start);
  }
  return {};
}

const OperationFailure* FailureOf(const StepResult& answer, uint32_t operation, uint32_t entry) {
  for (const OperationFailure& failure : answer.failures) {
    if (failure.operation == operation && failure.entry == entry) return &failure;
  }
  return nullptr;
}

template <typename Result>
const Result& ResultOf(const std::vector<Result>& results, uint32_t operation) {
  static const Result kMissing{};
  for (const Result& result : results) {
    if (result.operation == operation) return result;
  }
  ADD_FAILURE() << "the answer lacks the result of operation " << operation;
  return kMissing;
}

}  // namespace

ClientTables::ClientTables(const EngineOptions& options, std::string model_fingerprint,
                           TaggedMemory& memory)
    : options_(options), model_fingerprint_(std::move(model_fingerprint)), memory_(memory) {}

uint32_t ClientTables::BlocksFor(uint32_t slots) const {
  return (slots + options_.block_tokens - 1) / options_.block_tokens;
}

void ClientTables::Apply(const Batch& batch, const StepResult& answer) {
  ApplyOperations(batch, answer);
  ApplyRuns(answer);
  for (const CopyOrder& order : answer.copies) memory_.Execute(order);
  Launch();
}

void ClientTables::ApplyOperations(const Batch& batch, const StepResult& answer) {
  // With all_or_nothing one failure means that nothing happened.
  if (batch.all_or_nothing() && !answer.failures.empty()) return;
  uint32_t index = 0;
  for (const Operation& operation : batch.operations()) {
    std::visit([&](const auto& op) { Enter(index, op, answer); }, operation);
    ++index;
  }
}

void ClientTables::Enter(uint32_t index, const BeginOp& begin, const StepResult& answer) {
  if (FailureOf(answer, index, 0) != nullptr) return;
  const BeginResult& result = ResultOf(answer.begins, index);
  ClientSequence sequence;
  sequence.tokens.assign(begin.tokens.begin(), begin.tokens.end());
  ContentIds& contents = memory_.contents();
  ContentId content =
      contents.Root(NamespaceKey(model_fingerprint_, options_.layout_tag, begin.namespace_parts));
  for (uint32_t i = 0; i < sequence.tokens.size(); ++i) {
    content = contents.Next(content, sequence.tokens[i], DigestExtra(begin.digests, i));
    sequence.contents.push_back(content);
  }
  sequence.length = result.length;
  sequence.reserved = result.length;
  sequence.computed = result.reused_tokens;
  sequence.groups.resize(options_.groups.size());
  finished_.erase(begin.sequence);
  sequences_[begin.sequence] = std::move(sequence);
}

void ClientTables::Enter(uint32_t index, const AdvanceOp& advance, const StepResult& answer) {
  // Columns that do not fit each other fail as a whole.
  const OperationFailure* malformed = FailureOf(answer, index, 0);
  if (malformed != nullptr && malformed->error.reason == Reason::kInvalidArgument &&
      malformed->part == AdvancePart::kNone && malformed->reserved == 0) {
    return;
  }
  size_t token = 0;
  for (uint32_t entry = 0; entry < advance.sequences.size(); ++entry) {
    const size_t count = advance.token_counts.empty() ? 1 : advance.token_counts[entry];
    const auto tokens = advance.tokens.subspan(token, count);
    token += count;
    const OperationFailure* failure = FailureOf(answer, index, entry);
    if (failure != nullptr && failure->part != AdvancePart::kAhead) {
      if (Has(advance.sequences[entry])) {
        EXPECT_EQ(failure->reserved, sequences_.at(advance.sequences[entry]).reserved);
      }
      continue;
    }
    ClientSequence& sequence = sequences_.at(advance.sequences[entry]);
    for (const TokenId id : tokens) EnterToken(sequence, id);
    sequence.reserved = std::max(sequence.reserved, sequence.length);
    const uint32_t ahead = advance.aheads.empty() ? advance.ahead : advance.aheads[entry];
    const uint32_t wanted = static_cast<uint32_t>(
        std::min<uint64_t>(uint64_t{sequence.length} + ahead, options_.max_sequence_tokens));
    if (failure == nullptr) sequence.reserved = std::max(sequence.reserved, wanted);
    if (failure != nullptr) {
      EXPECT_EQ(failure->reserved, sequence.reserved);
    }
  }
}

void ClientTables::EnterToken(ClientSequence& sequence, TokenId token) {
  const ContentId content = memory_.contents().Next(sequence.contents.back(), token);
  if (!sequence.drafts.empty() && sequence.drafts.front() == content) {
    sequence.drafts.erase(sequence.drafts.begin());
    if (sequence.computed == sequence.length) ++sequence.computed;
  } else {
    sequence.drafts.clear();
  }
  sequence.tokens.push_back(token);
  sequence.contents.push_back(content);
  ++sequence.length;
}

void ClientTables::Enter(uint32_t index, const ExtendOp& extend, const StepResult& answer) {
  if (FailureOf(answer, index, 0) != nullptr) return;
  ClientSequence& sequence = sequences_.at(extend.sequence);
  const uint32_t slots = std::min(extend.slots, options_.max_sequence_tokens);
  sequence.reserved = std::max(sequence.reserved, slots);
  sequence.length =
      std::max(sequence.length,
               static_cast<uint32_t>(std::min<size_t>(sequence.reserved, sequence.tokens.size())));
}

void ClientTables::Enter(uint32_t /*index*/, const CommitOp& /*commit*/,
                         const StepResult& /*answer*/) {}

void ClientTables::Enter(uint32_t index, const ForkOp& fork, const StepResult& answer) {
  if (FailureOf(answer, index, 0) != nullptr) return;
  const ForkResult& result = ResultOf(answer.forks, index);
  ClientSequence& parent = sequences_.at(fork.sequence);
  parent.tokens.resize(parent.length);
  parent.contents.resize(parent.length);
  ClientSequence child;
  child.tokens.assign(parent.tokens.begin(), parent.tokens.begin() + result.length);
  child.contents.assign(parent.contents.begin(), parent.contents.begin() + result.length);
  child.length = child.reserved = child.computed = result.length;
  child.groups.resize(options_.groups.size());
  for (const SequenceHandle handle : fork.children) {
    sequences_[handle] = child;
    parents_[handle] = fork.sequence;
  }
}

void ClientTables::Enter(uint32_t index, const TruncateOp& truncate, const StepResult& answer) {
  if (FailureOf(answer, index, 0) != nullptr) return;
  ClientSequence& sequence = sequences_.at(truncate.sequence);
  sequence.tokens.resize(truncate.length);
  sequence.contents.resize(truncate.length);
  sequence.length = sequence.reserved = truncate.length;
  sequence.computed = std::min(sequence.computed, truncate.length);
  sequence.drafts.clear();
}

void ClientTables::Enter(uint32_t index, const FinishOp& finish, const StepResult& answer) {
  if (FailureOf(answer, index, 0) == nullptr) finished_.insert(finish.sequence);
}

// A child starts with its parent's entries; its own runs list what differs.
void ClientTables::CopyParentTables(SequenceHandle child) {
  const auto found = parents_.find(child);
  if (found == parents_.end()) return;
  const SequenceHandle parent = found->second;
  parents_.erase(found);
  CopyParentTables(parent);
  if (!Has(child) || !Has(parent)) return;
  ClientSequence& state = sequences_.at(child);
  state.groups = At(parent).groups;
  for (GroupTable& table : state.groups) {
    table.blocks.resize(std::min<size_t>(table.blocks.size(), BlocksFor(state.length)));
  }
}

void ClientTables::ApplyRuns(const StepResult& answer) {
  for (const TableRun& run : answer.runs) {
    CopyParentTables(run.sequence);
    const auto found = sequences_.find(run.sequence);
    if (found == sequences_.end()) continue;  // ended before this answer was applied
    std::vector<BlockId>& blocks = found->second.groups.at(run.group).blocks;
    blocks.resize(std::max<size_t>(blocks.size(), size_t{run.first_index} + run.count), kNoBlock);
    std::copy_n(answer.blocks.begin() + run.first_block, run.count,
                blocks.begin() + run.first_index);
  }
  while (!parents_.empty()) CopyParentTables(parents_.begin()->first);
  for (const SequenceHandle sequence : finished_) sequences_.erase(sequence);
  finished_.clear();
  for (auto& [handle, sequence] : sequences_) {
    for (GroupTable& table : sequence.groups) {
      const uint32_t needed = BlocksFor(sequence.reserved);
      if (table.blocks.size() > needed) table.blocks.resize(needed);
    }
  }
}

void ClientTables::Launch() {
  for (auto& [handle, sequence] : sequences_) {
    for (; sequence.computed < sequence.length; ++sequence.computed) {
      const uint32_t position = sequence.computed;
      const uint32_t index = position / options_.block_tokens;
      for (uint32_t group = 0; group < sequence.groups.size(); ++group) {
        const std::vector<BlockId>& blocks = sequence.groups[group].blocks;
        if (index >= blocks.size() || blocks[index] == kNoBlock) continue;
        memory_.Write(blocks[index], position % options_.block_tokens,
                      {sequence.contents[position], group});
      }
    }
  }
}

void ClientTables::WriteDrafts(SequenceHandle sequence, const Tokens& drafts) {
  ClientSequence& state = sequences_.at(sequence);
  state.drafts.clear();
  ContentId content = state.contents.back();
  for (const TokenId draft : drafts) {
    content = memory_.contents().Next(content, draft);
    const auto position = static_cast<uint32_t>(state.length + state.drafts.size());
    for (uint32_t group = 0; group < state.groups.size(); ++group) {
      memory_.Write(state.groups[group].blocks.at(position / options_.block_tokens),
                    position % options_.block_tokens, {content, group});
    }
    state.drafts.push_back(content);
  }
}

}  // namespace quire::testing
