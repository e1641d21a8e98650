#include "tests/support/step_maker.h"

#include <algorithm>

namespace quire::testing {
namespace {

constexpr size_t kHistory = 24;

}  // namespace

MadeStep StepMaker::Make(Choices& choices, const std::vector<SequenceView>& sequences,
                         uint32_t left_out) {
  lengths_.clear();
  for (const SequenceView& sequence : sequences) lengths_[sequence.handle] = sequence.length;
  MadeStep step;
  for (uint32_t count = choices.Next(5); count > 0; --count) {
    const uint32_t kind = choices.Next(20);
    const std::optional<SequenceHandle> handle = Pick(choices);
    if (kind < 4 || !handle.has_value()) {
      AddBegin(choices, step);
    } else if (kind < 11) {
      AddAdvance(choices, step);
    } else if (kind < 13) {
      AddExtend(choices, *handle, step);
    } else if (kind < 14) {
      AddCommit(choices, *handle, step);
    } else if (kind < 16) {
      AddFork(choices, *handle, step);
    } else if (kind < 18) {
      AddTruncate(choices, *handle, step);
    } else {
      AddFinish(choices, *handle, step);
    }
  }
  std::vector<Operation> kept;
  for (size_t i = 0; i < step.operations.size(); ++i) {
    if ((left_out >> i & 1) == 0) kept.push_back(std::move(step.operations[i]));
  }
  step.operations = std::move(kept);
  for (const Operation& operation : step.operations) step.text += Describe(operation) + "\n";
  return step;
}

std::optional<SequenceHandle> StepMaker::Pick(Choices& choices) const {
  if (choices.OneIn(32)) return 1 + choices.Next(handles_);
  if (lengths_.empty()) return std::nullopt;
  return std::next(lengths_.begin(), choices.Next(static_cast<uint32_t>(lengths_.size())))->first;
}

SequenceHandle StepMaker::PickNew(Choices& choices) const {
  const uint32_t start = choices.Next(handles_);
  if (choices.OneIn(24)) return 1 + start;
  for (uint32_t i = 0; i < handles_; ++i) {
    const SequenceHandle handle = 1 + (start + i) % handles_;
    if (!lengths_.contains(handle)) return handle;
  }
  return handles_ + 1;
}

Prompt StepMaker::MakePrompt(Choices& choices) {
  Prompt prompt;
  if (!history_.empty() && !choices.OneIn(4)) {
    prompt = history_[choices.Next(static_cast<uint32_t>(history_.size()))];
    const auto length = static_cast<uint32_t>(prompt.tokens.size());
    prompt.tokens.resize(choices.OneIn(2) ? length : choices.Next(length + 1));
    std::erase_if(prompt.digests,
                  [&](const DigestRange& range) { return range.end > prompt.tokens.size(); });
  } else {
    prompt.parts.salt = std::string(choices.Next(5) / 4, 's');
    prompt.parts.adapter = std::string(choices.Next(5) / 4, 's');
  }
  const uint32_t room = options_.max_sequence_tokens - static_cast<uint32_t>(prompt.tokens.size());
  const uint32_t most = std::min(room, 3 * options_.block_tokens);
  for (uint32_t more = choices.Next(most + 1); more > 0; --more) {
    prompt.tokens.push_back(choices.Next(alphabet_));
  }
  const auto length = static_cast<uint32_t>(prompt.tokens.size());
  if (length > 0 && choices.OneIn(8)) {
    const uint32_t start = prompt.digests.empty() ? choices.Next(length) : length;
    const uint32_t end = std::min(length, start + 1 + choices.Next(2 * options_.block_tokens));
    Digest digest{};
    digest[31] = static_cast<uint8_t>(choices.Next(2));
    if (start < end) prompt.digests.push_back({start, end, digest});
  }
  history_.push_back(prompt);
  if (history_.size() > kHistory) history_.pop_front();
  return prompt;
}

std::vector<RetentionRange> StepMaker::MakeRetention(Choices& choices) const {
  std::vector<RetentionRange> ranges;
  if (!choices.OneIn(5)) return ranges;
  uint32_t start = choices.Next(2 * options_.block_tokens);
  for (uint32_t count = 1 + choices.Next(2); count > 0; --count) {
    RetentionRange range;
    range.start = start;
    range.end = start + 1 + choices.Next(3 * options_.block_tokens);
    range.priority = choices.Next(11) * 10;
    if (choices.OneIn(3)) range.duration = std::chrono::milliseconds(1 + choices.Next(20));
    start = range.end + choices.Next(3);
    ranges.push_back(range);
  }
  if (choices.OneIn(4)) ranges.back().end = kRangeToEnd;
  if (choices.OneIn(40)) ranges.back().priority = 101;
  return ranges;
}

void StepMaker::AddBegin(Choices& choices, MadeStep& step) {
  const Prompt prompt = MakePrompt(choices);
  BeginOp begin;
  begin.sequence = PickNew(choices);
  begin.tokens = step.numbers.emplace_back(prompt.tokens);
  begin.namespace_parts = prompt.parts;
  begin.digests = prompt.digests;
  const auto total = static_cast<uint32_t>(prompt.tokens.size());
  if (choices.OneIn(5)) begin.allocate_tokens = choices.Next(total + 2);
  if (choices.OneIn(8)) begin.recompute_tail = choices.Next(2 * options_.block_tokens);
  begin.skip_cache_read = choices.OneIn(16);
  begin.retention = MakeRetention(choices);
  lengths_[begin.sequence] = total;
  step.operations.emplace_back(std::move(begin));
}

void StepMaker::AddAdvance(Choices& choices, MadeStep& step) {
  AdvanceOp advance;
  auto& handles = step.handles.emplace_back();
  auto& starts = step.numbers.emplace_back();
  auto& tokens = step.numbers.emplace_back();
  auto& counts = step.numbers.emplace_back();
  auto& aheads = step.numbers.emplace_back();
  const bool has_counts = choices.OneIn(3);
  const bool has_aheads = choices.OneIn(3);
  for (uint32_t entries = 1 + choices.Next(3); entries > 0; --entries) {
    const SequenceHandle handle = Pick(choices).value_or(1);
    uint32_t& length = lengths_[handle];
    const uint32_t count = has_counts ? choices.Next(options_.block_tokens + 2) : 1;
    handles.push_back(handle);
    starts.push_back(length + choices.Next(40) / 39);
    for (uint32_t i = 0; i < count; ++i) tokens.push_back(choices.Next(alphabet_));
    if (has_counts) counts.push_back(count);
    if (has_aheads) aheads.push_back(choices.Next(2 * options_.block_tokens));
    length += count;
  }
  if (!has_aheads && choices.OneIn(3)) advance.ahead = choices.Next(options_.block_tokens + 2);
  advance.sequences = handles;
  advance.start_lengths = starts;
  advance.tokens = tokens;
  advance.token_counts = counts;
  advance.aheads = aheads;
  step.operations.emplace_back(advance);
}

void StepMaker::AddExtend(Choices& choices, SequenceHandle handle, MadeStep& step) {
  const uint32_t length = lengths_[handle];
  step.operations.emplace_back(
      ExtendOp{handle, length, length + choices.Next(2 * options_.block_tokens + 2)});
}

void StepMaker::AddCommit(Choices& choices, SequenceHandle handle, MadeStep& step) {
  const uint32_t length = lengths_[handle];
  const uint32_t committed = choices.OneIn(3) ? choices.Next(length + 2) : length;
  step.operations.emplace_back(CommitOp{handle, length, committed});
}

void StepMaker::AddFork(Choices& choices, SequenceHandle handle, MadeStep& step) {
  auto& children = step.handles.emplace_back();
  const uint32_t length = lengths_[handle];
  for (uint32_t count = 1 + choices.Next(2); count > 0; --count) {
    children.push_back(PickNew(choices));
    lengths_[children.back()] = length;
  }
  step.operations.emplace_back(ForkOp{handle, length, children});
}

void StepMaker::AddTruncate(Choices& choices, SequenceHandle handle, MadeStep& step) {
  uint32_t& length = lengths_[handle];
  const uint32_t shorter =
      choices.OneIn(24) ? length + 1 : length - std::min(length, choices.Next(length + 1));
  step.operations.emplace_back(TruncateOp{handle, length, shorter});
  length = shorter;
}

void StepMaker::AddFinish(Choices& choices, SequenceHandle handle, MadeStep& step) {
  FinishOp finish;
  finish.sequence = handle;
  finish.drop = choices.OneIn(4);
  finish.retention = MakeRetention(choices);
  lengths_.erase(handle);
  step.operations.emplace_back(std::move(finish));
}

}  // namespace quire::testing
