#include "worker/client/block_tables.h"

#include <algorithm>
#include <map>
#include <set>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace quire::client {

struct BlockTables::Pass {
  const StepAnswer& answer;
  std::map<OperationId, const OperationFailure*> failures{};
  // Lengths when the step began: what an advance commits.
  std::map<SequenceHandle, uint32_t> start_lengths{};
  // Children that have lengths but no tables yet, with their parents.
  std::map<SequenceHandle, SequenceHandle> parents{};
  std::set<SequenceHandle> touched{};
  std::vector<SequenceHandle> finished{};

  const OperationFailure* FailureOf(OperationId id) const {
    const auto found = failures.find(id);
    return found == failures.end() ? nullptr : found->second;
  }
};

absl::Status BlockTables::Apply(const Step& step, const StepAnswer& answer) {
  Pass pass{.answer = answer};
  for (const OperationFailure& failure : answer.failures) pass.failures[failure.id] = &failure;
  const auto& operations = step.operations();
  // Of a step undone, runs that its counters caused remain.
  const bool undone = step.all_or_nothing() && !answer.failures.empty();
  for (uint32_t i = 0; i < operations.size() && !undone; ++i) {
    if (absl::Status status = ApplyOperation(operations[i], i, pass); !status.ok()) return status;
  }
  for (const TableRun& run : answer.table) {
    if (absl::Status status = ApplyRun(run, pass); !status.ok()) return status;
  }
  while (!pass.parents.empty()) CreateChild(pass.parents.begin()->first, pass);
  for (const SequenceHandle sequence : pass.touched) {
    if (SequenceState* state = FindMutable(sequence)) Trim(*state);
  }
  for (const SequenceHandle sequence : pass.finished) sequences_.erase(sequence);
  return absl::OkStatus();
}

absl::Status BlockTables::ApplyOperation(const Operation& operation, uint32_t index, Pass& pass) {
  const OperationId id{.operation = index};
  if (const auto* begin = std::get_if<BeginParams>(&operation)) {
    return ApplyBegin(*begin, index, pass);
  }
  if (const auto* fork = std::get_if<ForkParams>(&operation)) return ApplyFork(*fork, index, pass);
  if (const auto* advance = std::get_if<AdvanceColumns>(&operation)) {
    ApplyAdvance(*advance, index, pass);
  } else if (const auto* extend = std::get_if<ExtendParams>(&operation)) {
    ApplyExtend(*extend, id, pass);
    pass.touched.insert(extend->sequence);
  } else if (pass.FailureOf(id) != nullptr) {
    return absl::OkStatus();
  } else if (const auto* commit = std::get_if<CommitParams>(&operation)) {
    if (SequenceState* state = FindMutable(commit->sequence)) {
      state->committed = commit->committed_length;
    }
  } else if (const auto* truncate = std::get_if<TruncateParams>(&operation)) {
    if (SequenceState* state = FindMutable(truncate->sequence)) {
      state->length = state->reserved = truncate->length;
      state->committed = std::min(state->committed, state->length);
      state->given_left = 0;
      pass.touched.insert(truncate->sequence);
    }
  } else if (const auto* finish = std::get_if<FinishParams>(&operation)) {
    pass.finished.push_back(finish->sequence);
  }
  return absl::OkStatus();
}

absl::Status BlockTables::ApplyBegin(const BeginParams& begin, uint32_t index, Pass& pass) {
  const OperationId id{.operation = index};
  const BeginResult* result = pass.answer.BeginOf(id);
  if (result == nullptr) {
    if (pass.FailureOf(id) != nullptr) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("no result for begin ", index));
  }
  if (result->length > begin.tokens.size()) {
    return absl::InternalError(
        absl::StrCat("begin of ", begin.tokens.size(), " tokens has length ", result->length));
  }
  SequenceState state;
  state.committed = result->reused_tokens;
  state.length = state.reserved = result->length;
  state.given_left = static_cast<uint32_t>(begin.tokens.size()) - result->length;
  state.tables.resize(limits_.groups);
  sequences_[begin.sequence] = std::move(state);
  pass.start_lengths[begin.sequence] = result->reused_tokens;
  return absl::OkStatus();
}

void BlockTables::ApplyAdvance(const AdvanceColumns& advance, uint32_t index, Pass& pass) {
  for (uint32_t entry = 0; entry < advance.sequences.size(); ++entry) {
    SequenceState* state = FindMutable(advance.sequences[entry]);
    if (state == nullptr) continue;
    const uint32_t start =
        pass.start_lengths.try_emplace(advance.sequences[entry], state->length).first->second;
    const OperationFailure* failure = pass.FailureOf({.operation = index, .entry = entry});
    if (failure != nullptr && failure->part <= AdvancePart::kCommit) continue;
    state->committed = std::max(state->committed, std::min(start, state->length));
    if (failure != nullptr && failure->part == AdvancePart::kEnter) continue;
    state->length += advance.token_counts[entry];
    state->reserved = std::max(state->reserved, state->length);
    if (failure != nullptr) {
      state->reserved = std::max(state->length, failure->reserved);
    } else {
      const uint64_t wanted = uint64_t{state->length} + advance.aheads[entry];
      state->reserved =
          std::max(state->reserved,
                   static_cast<uint32_t>(std::min<uint64_t>(wanted, limits_.max_sequence_tokens)));
    }
    pass.touched.insert(advance.sequences[entry]);
  }
}

void BlockTables::ApplyExtend(const ExtendParams& extend, OperationId id, const Pass& pass) {
  SequenceState* state = FindMutable(extend.sequence);
  if (state == nullptr || pass.FailureOf(id) != nullptr) return;
  const uint32_t slots = std::min(extend.slots, limits_.max_sequence_tokens);
  if (slots > state->length) {
    const uint32_t entered = std::min(state->given_left, slots - state->length);
    state->length += entered;
    state->given_left -= entered;
  }
  state->reserved = std::max(state->reserved, slots);
}

absl::Status BlockTables::ApplyFork(const ForkParams& fork, uint32_t index, Pass& pass) {
  if (pass.FailureOf({.operation = index}) != nullptr) return absl::OkStatus();
  const auto& forks = pass.answer.forks;
  const auto result =
      std::find_if(forks.begin(), forks.end(),
                   [index](const ForkResult& candidate) { return candidate.operation == index; });
  SequenceState* parent = FindMutable(fork.sequence);
  if (result == forks.end() || parent == nullptr) {
    return absl::InternalError(absl::StrCat("no result for fork ", index));
  }
  parent->committed = std::max(parent->committed, result->length);
  parent->given_left = 0;
  for (const SequenceHandle child : fork.children) {
    SequenceState state;
    state.committed = state.length = state.reserved = result->length;
    sequences_[child] = std::move(state);
    pass.parents[child] = fork.sequence;
    pass.touched.insert(child);
  }
  return absl::OkStatus();
}

// A child's first entries are the parent's. Changes of the parent's table by the fork itself (its
// commit may remap) precede the child's runs, so the parent is read when the child is first needed.
void BlockTables::CreateChild(SequenceHandle child, Pass& pass) {
  const auto entry = pass.parents.find(child);
  if (entry == pass.parents.end()) return;
  const SequenceHandle parent = entry->second;
  pass.parents.erase(entry);
  CreateChild(parent, pass);
  SequenceState& state = sequences_.at(child);
  state.tables = sequences_.at(parent).tables;
  for (std::vector<BlockIndex>& table : state.tables) {
    table.resize(std::min<size_t>(table.size(), TableSize(state.length)));
  }
}

absl::Status BlockTables::ApplyRun(const TableRun& run, Pass& pass) {
  CreateChild(run.sequence, pass);
  SequenceState* state = FindMutable(run.sequence);
  if (state == nullptr || run.group >= state->tables.size()) {
    return absl::InternalError(
        absl::StrCat("run for sequence ", run.sequence, " group ", run.group));
  }
  const uint64_t end = uint64_t{run.first_index} + run.blocks.size();
  if (end > TableSize(limits_.max_sequence_tokens)) {
    return absl::InternalError(absl::StrCat("run of sequence ", run.sequence, " ends at ", end));
  }
  std::vector<BlockIndex>& table = state->tables[run.group];
  if (table.size() < end) table.resize(end, kNoBlock);
  for (size_t i = 0; i < run.blocks.size(); ++i) {
    const BlockIndex block = run.blocks[i];
    if (block != kNoBlock && static_cast<uint32_t>(block) >= limits_.block_count) {
      return absl::InternalError(
          absl::StrCat("block ", block, " is not in the pool of ", limits_.block_count));
    }
    table[run.first_index + i] = block;
  }
  return absl::OkStatus();
}

void BlockTables::Trim(SequenceState& state) const {
  const uint32_t size = TableSize(std::max(state.length, state.reserved));
  for (std::vector<BlockIndex>& table : state.tables) {
    if (table.size() > size) table.resize(size);
  }
}

uint32_t BlockTables::TableSize(uint32_t slots) const {
  return static_cast<uint32_t>((uint64_t{slots} + limits_.block_tokens - 1) / limits_.block_tokens);
}

const SequenceState* BlockTables::Find(SequenceHandle sequence) const {
  const auto found = sequences_.find(sequence);
  return found == sequences_.end() ? nullptr : &found->second;
}

SequenceState* BlockTables::FindMutable(SequenceHandle sequence) {
  const auto found = sequences_.find(sequence);
  return found == sequences_.end() ? nullptr : &found->second;
}

}  // namespace quire::client
