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

}  // namespace quire::testing
