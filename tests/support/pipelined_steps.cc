// What a pipelined worker sends, and the sequences it makes.
#include <memory>
#include <utility>

#include "gtest/gtest.h"
#include "tests/support/pipelined_worker.h"

namespace quire::testing {

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
