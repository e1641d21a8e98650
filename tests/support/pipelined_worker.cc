#include "tests/support/pipelined_worker.h"

#include <algorithm>
#include <string>
#include <utility>

#include "gtest/gtest.h"

namespace quire::testing {
namespace {

constexpr TokenId kWrongDraft = 0xFFFFFFFF;

const OperationFailure* FailureOf(const StepResult& answer, uint32_t operation, uint32_t entry) {
  for (const OperationFailure& failure : answer.failures) {
    if (failure.operation == operation && failure.entry == entry) return &failure;
  }
  return nullptr;
}

}  // namespace

PipelinedWorker::PipelinedWorker(EngineDriver& driver, TaggedMemory& memory,
                                 const AttachParams& params, const PipelineOptions& options)
    : driver_(driver),
      memory_(memory),
      options_(options),
      random_(options.seed),
      name_(params.worker) {
  const auto attached = driver.Attach(params);
  EXPECT_TRUE(attached.ok()) << attached.status();
  if (attached.ok()) lease_ = attached->lease;
  root_ = memory.contents().Root(params.model_fingerprint);
  next_token_ += options.seed * 100'000'000;
}

void PipelinedWorker::Tick() {
  ++tick_;
  if (tick_ > options_.lag) RunDevice(tick_ - 1 - options_.lag);
  if (in_flight_.size() >= options_.answer_delay) ApplyOldest();
  SendStep();
  LaunchAll();
}

void PipelinedWorker::Stop() {
  stopping_ = true;
  for (uint32_t i = 0; i < 3 * (options_.lag + options_.answer_delay + 2); ++i) Tick();
  EXPECT_TRUE(sequences_.empty());
}

// --- Device ---

void PipelinedWorker::RunDevice(uint64_t through_tick) {
  while (!device_.empty() && device_.front().tick <= through_tick) {
    const Action action = std::move(device_.front());
    device_.pop_front();
    action.run();
  }
}

void PipelinedWorker::LaunchAll() {
  for (const auto& [handle, sequence] : sequences_) {
    if (!sequence->begun || sequence->ending) continue;
    // The host knows the length only up to the launches whose values are unknown.
    const uint32_t slots =
        sequence->known + (1 + options_.drafts) * (sequence->unknown_launches + 1) - 1;
    if (slots <= sequence->reserved) {
      Launch(sequence, options_.drafts);
    } else if (sequence->unknown_launches > 0) {
      ++waits_;
    } else if (sequence->known <= sequence->reserved) {
      Launch(sequence, sequence->reserved - sequence->known);
    }
  }
}

void PipelinedWorker::Launch(const DecodingPtr& sequence, uint32_t drafts) {
  const auto position = static_cast<uint32_t>(sequence->truth.size()) - 1;
  const uint32_t first_written = sequence->written;
  const uint32_t accepted = Draw(drafts + 1);
  for (uint32_t i = 0; i < accepted; ++i) AppendTruth(*sequence, next_token_++);
  std::vector<ContentId> written(sequence->contents.begin() + first_written,
                                 sequence->contents.end());
  for (uint32_t i = accepted; i < drafts; ++i) {
    written.push_back(memory_.contents().Next(written.back(), kWrongDraft));
  }
  AppendTruth(*sequence, next_token_++);
  sequence->written = position + 1 + accepted;
  ++sequence->unknown_launches;
  ++launches_;
  device_.push_back({tick_, [this, sequence, tables = sequence->tables, first_written, position,
                             written = std::move(written), tokens = accepted + 1] {
                       RunKernel(*sequence, tables, first_written, position, written);
                       --sequence->unknown_launches;
                       sequence->known += tokens;
                     }});
}

void PipelinedWorker::RunKernel(const Decoding& sequence,
                                const std::vector<std::vector<BlockId>>& tables,
                                uint32_t first_written, uint32_t position,
                                const std::vector<ContentId>& written) {
  const uint32_t block_tokens = memory_.block_tokens();
  for (uint32_t group = 0; group < tables.size(); ++group) {
    for (uint32_t i = 0; i < written.size(); ++i) {
      const uint32_t slot = first_written + i;
      const BlockId block = tables[group].at(slot / block_tokens);
      // A long prompt's first blocks may lie behind the window already.
      if (block != kNoBlock) memory_.Write(block, slot % block_tokens, {written[i], group});
    }
    const uint32_t window = driver_.options().groups[group].window_tokens;
    const uint32_t first = window == 0 || position < window ? 0 : position - window + 1;
    for (uint32_t slot = first; slot <= position; ++slot) {
      const BlockId block = tables[group].at(slot / block_tokens);
      ASSERT_NE(block, kNoBlock) << "sequence " << sequence.handle << ", position " << slot;
      ASSERT_TRUE(memory_.At(block, slot % block_tokens) ==
                  (SlotTag{sequence.contents[slot], group}))
          << "tick " << tick_ << ", sequence " << sequence.handle << ", position " << slot << " of "
          << position << ": block " << Index(block) << " holds other bytes";
    }
  }
}

// --- Answers ---

void PipelinedWorker::ApplyOldest() {
  const InFlight step = std::move(in_flight_.front());
  in_flight_.pop_front();
  ++applied_;
  for (const Sent& sent : step.operations) ApplyOperation(sent, step.answer);
  ApplyRuns(step.answer);
  // Only now: a child of the same step starts from the tables of a parent that ended in it.
  for (const Sent& sent : step.operations) {
    if (sent.kind == Kind::kFinish) sequences_.erase(sent.sequence->handle);
  }
  for (const CopyOrder& copy : step.answer.copies) {
    device_.push_back({tick_, [this, copy] { memory_.Execute(copy); }});
  }
  device_.push_back({tick_, [this, step_number = applied_] { completed_ = step_number; }});
  if (std::exchange(short_of_blocks_, false)) Preempt();
}

void PipelinedWorker::ApplyOperation(const Sent& sent, const StepResult& answer) {
  const OperationFailure* failure = FailureOf(answer, sent.operation, sent.entry);
  --sent.sequence->unanswered;
  switch (sent.kind) {
    case Kind::kBegin:
      ApplyBegin(sent, answer, failure);
      break;
    case Kind::kExtend:
      if (failure == nullptr) sent.sequence->reserved = sent.count;
      break;
    case Kind::kAdvance:
      ApplyAdvance(sent, failure);
      break;
    case Kind::kFork:
      if (failure != nullptr) {
        // Behind a parent's advance that failed the fork finds another length.
        EXPECT_TRUE(failure->error.reason == Reason::kPoolExhausted ||
                    failure->error.reason == Reason::kLengthMismatch)
            << failure->error.message;
        sequences_.erase(sent.sequence->handle);
      } else {
        sent.sequence->begun = true;
        ++forks_;
      }
      break;
    case Kind::kFinish:
      EXPECT_EQ(failure, nullptr);
  }
}

void PipelinedWorker::ApplyBegin(const Sent& sent, const StepResult& answer,
                                 const OperationFailure* failure) {
  Decoding& sequence = *sent.sequence;
  if (failure != nullptr) {
    EXPECT_EQ(failure->error.reason, Reason::kPoolExhausted) << failure->error.message;
    waiting_.push_front(sequence.truth);
    sequences_.erase(sequence.handle);
    return;
  }
  for (const BeginResult& begun : answer.begins) {
    if (begun.operation != sent.operation) continue;
    sequence.begun = true;
    sequence.reserved = sequence.entered = sequence.sent = begun.length;
    sequence.written = begun.reused_tokens;
    tokens_reused_ += begun.reused_tokens;
  }
  EXPECT_TRUE(sequence.begun);
}

void PipelinedWorker::ApplyAdvance(const Sent& sent, const OperationFailure* failure) {
  Decoding& sequence = *sent.sequence;
  const bool has_entered = failure == nullptr || failure->part == AdvancePart::kAhead;
  if (has_entered) {
    sequence.entered += sent.count;
    sequence.reserved = failure != nullptr
                            ? failure->reserved
                            : std::max(sequence.reserved, sequence.entered + options_.ahead);
  }
  if (failure == nullptr) return;
  if (failure->error.reason == Reason::kPoolExhausted) {
    short_of_blocks_ = true;
    const std::string_view waits = failure->error.Detail("waiting_worker");
    if (!waits.empty() && waits != name_) must_give_way_ = true;
  } else {
    EXPECT_EQ(failure->error.reason, Reason::kLengthMismatch) << failure->error.message;
    EXPECT_TRUE(sequence.stalled) << failure->error.message;
  }
  if (!has_entered) sequence.stalled = true;
}

void PipelinedWorker::ApplyRuns(const StepResult& answer) {
  for (const TableRun& run : answer.runs) {
    const auto found = sequences_.find(run.sequence);
    if (found == sequences_.end()) continue;
    CopyParentTables(*found->second);
    std::vector<BlockId>& table = found->second->tables.at(run.group);
    table.resize(std::max<size_t>(table.size(), size_t{run.first_index} + run.count), kNoBlock);
    std::copy_n(answer.blocks.begin() + run.first_block, run.count,
                table.begin() + run.first_index);
  }
  for (const auto& [handle, sequence] : sequences_) {
    if (sequence->begun) CopyParentTables(*sequence);
  }
}

void PipelinedWorker::CopyParentTables(Decoding& child) const {
  if (child.parent == nullptr) return;
  child.tables = child.parent->tables;
  for (std::vector<BlockId>& table : child.tables) {
    table.resize((child.sent + memory_.block_tokens() - 1) / memory_.block_tokens());
  }
  child.parent = nullptr;
}

void PipelinedWorker::Preempt() {
  if (!std::exchange(must_give_way_, false) && Running() < 2) return;
  for (auto it = sequences_.rbegin(); it != sequences_.rend(); ++it) {
    Decoding& sequence = *it->second;
    if (!sequence.begun || sequence.ending) continue;
    sequence.ending = true;
    waiting_.push_back(Tokens(sequence.truth.begin(), sequence.truth.begin() + sequence.known));
    ++preemptions_;
    return;
  }
}

// --- Steps ---

void PipelinedWorker::SendStep() {
  Batch batch;
  InFlight step;
  AddForks(batch, step);
  AddAdvances(batch, step);
  AddFinishes(batch, step);
  AddBegins(batch, step);
  for (const Sent& sent : step.operations) ++sent.sequence->unanswered;
  StepParams params;
  params.lease = lease_;
  params.epoch = driver_.options().epoch;
  params.step = ++last_sent_;
  params.applied_step = applied_;
  params.completed_step = completed_;
  params.operations = batch.operations();
  auto answer = driver_.Step(params);
  ASSERT_TRUE(answer.ok()) << answer.status();
  step.answer = *std::move(answer);
  in_flight_.push_back(std::move(step));
}

void PipelinedWorker::AddForks(Batch& batch, InFlight& step) {
  if (stopping_ || Running() >= options_.most_sequences || Draw(20) != 0) return;
  for (const auto& [handle, parent] : sequences_) {
    // Only computed tokens may be shared: every entered token's kernel is launched.
    const bool computed = parent->written >= parent->sent;
    if (!parent->begun || parent->ending || parent->stalled || !computed) continue;
    const uint32_t length = parent->sent;
    Tokens tokens(parent->truth.begin(), parent->truth.begin() + length);
    tokens.push_back(next_token_++);
    const DecodingPtr child = MakeSequence(tokens);
    child->sent = child->entered = child->reserved = child->written = length;
    child->parent = parent;
    step.operations.push_back(
        {Kind::kFork, static_cast<uint32_t>(batch.operations().size()), 0, child});
    batch.Fork(handle, length, {child->handle});
    return;
  }
}

void PipelinedWorker::AddAdvances(Batch& batch, InFlight& step) {
  std::vector<SequenceHandle> handles;
  std::vector<uint32_t> starts;
  std::vector<uint32_t> counts;
  Tokens tokens;
  const auto operation = static_cast<uint32_t>(batch.operations().size());
  for (const auto& [handle, sequence] : sequences_) {
    if (!sequence->begun || sequence->ending) continue;
    if (sequence->stalled && sequence->unanswered == 0) {
      sequence->stalled = false;
      sequence->sent = sequence->entered;
    }
    // The advance commits what has entered, so its kernels must be launched.
    if (sequence->stalled || sequence->written < sequence->sent) continue;
    const uint32_t count = sequence->known - sequence->sent;
    if (count == 0 && sequence->reserved >= sequence->sent + options_.ahead) continue;
    step.operations.push_back(
        {Kind::kAdvance, operation, static_cast<uint32_t>(handles.size()), sequence, count});
    handles.push_back(handle);
    starts.push_back(sequence->sent);
    counts.push_back(count);
    tokens.insert(tokens.end(), sequence->truth.begin() + sequence->sent,
                  sequence->truth.begin() + sequence->known);
    sequence->sent = sequence->known;
  }
  if (!handles.empty()) {
    batch.AdvanceColumns(handles, starts, tokens, counts, {}, options_.ahead);
  }
}

void PipelinedWorker::AddFinishes(Batch& batch, InFlight& step) {
  for (const auto& [handle, sequence] : sequences_) {
    if (!sequence->begun) continue;
    const bool was_ending = sequence->ending;
    const bool is_over = sequence->known >= options_.most_tokens || Draw(150) == 0;
    if (!was_ending && !is_over && !stopping_) continue;
    sequence->ending = true;
    // Named once; a preempted sequence may be ending without having been named.
    if (std::exchange(sequence->begun, false)) {
      step.operations.push_back(
          {Kind::kFinish, static_cast<uint32_t>(batch.operations().size()), 0, sequence});
      batch.Finish(handle);
    }
  }
}

void PipelinedWorker::AddBegins(Batch& batch, InFlight& step) {
  if (stopping_ || Running() >= options_.most_sequences || Draw(4) != 0) return;
  Tokens prompt = DrawPrompt();
  if (!waiting_.empty()) {
    prompt = std::move(waiting_.front());
    waiting_.pop_front();
  }
  const DecodingPtr sequence = MakeSequence(prompt);
  const auto length = static_cast<uint32_t>(prompt.size());
  const auto operation = static_cast<uint32_t>(batch.operations().size());
  sequence->sent = length;
  step.operations.push_back({Kind::kBegin, operation, 0, sequence});
  step.operations.push_back({Kind::kExtend, operation + 1, 0, sequence, length + options_.ahead});
  batch.Begin(sequence->handle, prompt).Extend(sequence->handle, length, length + options_.ahead);
}

// --- Sequences ---

PipelinedWorker::DecodingPtr PipelinedWorker::MakeSequence(const Tokens& tokens) {
  auto sequence = std::make_shared<Decoding>();
  sequence->handle = next_handle_++;
  for (const TokenId token : tokens) AppendTruth(*sequence, token);
  sequence->known = static_cast<uint32_t>(tokens.size());
  sequence->tables.resize(driver_.options().groups.size());
  sequences_[sequence->handle] = sequence;
  return sequence;
}

Tokens PipelinedWorker::DrawPrompt() {
  // Three families of prompts, common to all workers, each cut anywhere, and a tail of its own.
  const uint32_t length = 1 + Draw(options_.most_prompt_tokens);
  Tokens prompt = Text(1 + Draw(3), length);
  for (uint32_t i = Draw(5); i > 0; --i) prompt.push_back(next_token_++);
  return prompt;
}

void PipelinedWorker::AppendTruth(Decoding& sequence, TokenId token) {
  const ContentId before = sequence.contents.empty() ? root_ : sequence.contents.back();
  sequence.truth.push_back(token);
  sequence.contents.push_back(memory_.contents().Next(before, token));
}

size_t PipelinedWorker::Running() const { return sequences_.size(); }

}  // namespace quire::testing
