#include "tests/support/scenario_worker.h"

#include <algorithm>

#include "gtest/gtest.h"

namespace quire::testing {
namespace {

AttachResult AttachOrFail(EngineDriver& driver, const AttachParams& params) {
  const auto attached = driver.Attach(params);
  if (attached.ok()) return *attached;
  ADD_FAILURE() << "attach of " << params.worker << ": " << attached.status();
  return {};
}

void ExpectNoFailures(const StepResult& answer) {
  for (const OperationFailure& failure : answer.failures) {
    ADD_FAILURE() << "operation " << failure.operation << ", entry " << failure.entry << ": "
                  << failure.error.message;
  }
}

}  // namespace

Worker::Worker(EngineDriver& driver, TaggedMemory& memory, const AttachParams& params)
    : driver_(driver),
      params_(params),
      attached_(AttachOrFail(driver, params)),
      tables_(driver.options(), params.model_fingerprint, memory),
      last_sent_(attached_.expected_step - 1) {}

StepParams Worker::ParamsFor(const Batch& batch, StepNumber step) const {
  StepParams params;
  params.lease = lease();
  params.epoch = driver_.options().epoch;
  params.step = step;
  params.applied_step = applied();
  params.completed_step = completed_;
  params.all_or_nothing = batch.all_or_nothing();
  params.operations = batch.operations();
  return params;
}

Error Worker::Send(const Batch& batch) {
  auto answer = driver_.Step(ParamsFor(batch, last_sent_ + 1));
  if (!answer.ok()) return FromStatus(answer.status());
  ++last_sent_;
  EXPECT_EQ(answer->step, last_sent_);
  in_flight_.push_back({batch, *std::move(answer)});
  return {};
}

StepResult Worker::ApplyNext() {
  if (in_flight_.empty()) {
    ADD_FAILURE() << "no step is in flight";
    return {};
  }
  const InFlight oldest = std::move(in_flight_.front());
  in_flight_.pop_front();
  tables_.Apply(oldest.batch, oldest.answer);
  return oldest.answer;
}

StepResult Worker::Do(const Batch& batch) {
  const Error error = Send(batch);
  if (!error.ok()) {
    ADD_FAILURE() << "the step was refused: " << error.message;
    return {};
  }
  while (in_flight_.size() > 1) ApplyNext();
  return ApplyNext();
}

StepResult Worker::Must(const Batch& batch) {
  const StepResult answer = Do(batch);
  ExpectNoFailures(answer);
  return answer;
}

StepResult Worker::Settle() {
  while (!in_flight_.empty()) ApplyNext();
  Complete(last_sent_);
  return Do(Batch());
}

Error Worker::Renew() {
  const auto renewed = driver_.Renew({lease(), driver_.options().epoch, applied(), completed_});
  return FromStatus(renewed.status());
}

BeginResult Worker::Begin(SequenceHandle sequence, const Tokens& tokens,
                          const BeginOptions& options) {
  const StepResult answer = Must(Batch().Begin(sequence, tokens, options));
  Settle();
  return answer.begins.empty() ? BeginResult{} : answer.begins.front();
}

BeginResult Worker::Prompt(SequenceHandle sequence, const Tokens& tokens,
                           const BeginOptions& options) {
  const StepResult answer = Must(Batch().Begin(sequence, tokens, options));
  if (tables_.Has(sequence)) Commit(sequence, Length(sequence));
  return answer.begins.empty() ? BeginResult{} : answer.begins.front();
}

Error Worker::BeginError(SequenceHandle sequence, const Tokens& tokens,
                         const BeginOptions& options) {
  const StepResult answer = Do(Batch().Begin(sequence, tokens, options));
  Settle();
  const Error error = ErrorOf(answer);
  EXPECT_FALSE(error.ok()) << "the begin was expected to be refused";
  return error;
}

void Worker::Commit(SequenceHandle sequence, uint32_t committed_length) {
  Must(Batch().Commit(sequence, Length(sequence), committed_length));
  Settle();
}

void Worker::Advance(SequenceHandle sequence, TokenId token, uint32_t ahead) {
  Must(Batch().Advance(sequence, Length(sequence), {token}, ahead));
  Settle();
}

void Worker::Generate(SequenceHandle sequence, const Tokens& tokens) {
  for (const TokenId token : tokens) {
    Must(Batch().Advance(sequence, Length(sequence), {token}));
  }
  Settle();
}

void Worker::Extend(SequenceHandle sequence, uint32_t slots) {
  Must(Batch().Extend(sequence, Length(sequence), slots));
  Settle();
}

void Worker::Fork(SequenceHandle sequence, const std::vector<SequenceHandle>& children) {
  Must(Batch().Fork(sequence, Length(sequence), children));
  Settle();
}

void Worker::Truncate(SequenceHandle sequence, uint32_t length) {
  Must(Batch().Truncate(sequence, Length(sequence), length));
  Settle();
}

void Worker::Finish(SequenceHandle sequence, bool drop,
                    const std::vector<RetentionRange>& retention) {
  Must(Batch().Finish(sequence, drop, retention));
  Settle();
}

size_t Worker::Held(SequenceHandle sequence, uint32_t group) const {
  const std::vector<BlockId>& blocks = Table(sequence, group);
  return blocks.size() - static_cast<size_t>(std::count(blocks.begin(), blocks.end(), kNoBlock));
}

SequenceView Worker::View(SequenceHandle sequence) const {
  auto view = driver_.GetSequence(name(), sequence);
  if (view.ok()) return *std::move(view);
  ADD_FAILURE() << view.status();
  return {};
}

void Worker::ExpectConsistent() const {
  tables_.ExpectBytes();
  if (!in_flight_.empty()) return;
  std::vector<SequenceHandle> handles;
  for (const auto& [handle, sequence] : tables_.all()) handles.push_back(handle);
  const auto views = driver_.GetTables(lease(), driver_.options().epoch, handles);
  ASSERT_TRUE(views.ok()) << views.status();
  tables_.ExpectEqualTo(*views);
}

}  // namespace quire::testing
