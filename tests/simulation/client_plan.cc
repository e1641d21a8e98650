// Which operations a client sends: any legal mix.
#include <algorithm>
#include <utility>

#include "tests/simulation/client.h"

namespace quire::simulation {
namespace {

constexpr Tick kRetryTicks = 5;

}  // namespace

void Client::SendStep() {
  const bool lock_step = plan_.wire == Wire::kLockStep;
  if (state_ != State::kAttached || detaching_) return;
  if (plan_.wire == Wire::kStream && stream_ == 0) return;
  if (lock_step && (!Quiet() || now() < renewal_until_)) return;
  if (under_way_.size() >= plan_.steps_in_flight) return;
  StepUnderWay step;
  step.number = last_sent_ + 1;
  step.content = std::make_shared<StepContent>();
  step.content->all_or_nothing = random_.OneIn(25);
  making_ = &step;
  const size_t count = sequences_.size();
  for (size_t i = 0; i < count; ++i) PlanSequence(SequencePtr(sequences_[i]));
  if (count > 0 && random_.OneIn(5)) {
    PlanSequence(SequencePtr(sequences_[random_.Below(static_cast<uint32_t>(sequences_.size()))]));
  }
  if (!leaving_ && sequences_.size() < plan_.most_sequences && random_.OneIn(3)) AddBegin();
  CloseAdvance();
  making_ = nullptr;
  if (step.ops.empty() && !random_.OneIn(6)) return;
  ++last_sent_;
  under_way_.push_back(std::move(step));
  SendStepMessage(under_way_.back());
}

bool Client::MaySend(Sequence& sequence) {
  if (!sequence.usable || sequence.ending || !sequence.sent_known) return false;
  if (!sequence.stalled) return true;
  if (sequence.unanswered > 0) return false;
  sequence.stalled = false;
  sequence.sent = sequence.answered;
  return true;
}

void Client::PlanSequence(const SequencePtr& sequence) {
  if (!MaySend(*sequence)) {
    // Whatever is under way: a finish ends the sequence at any length.
    if (sequence->doomed && sequence->begun && !sequence->ending) AddFinish(sequence);
    return;
  }
  const bool over = sequence->doomed || leaving_ || sequence->known >= sequence->target;
  if (over || random_.OneIn(80)) {
    if (sequence->begun) AddFinish(sequence);
    return;
  }
  if (now() < sequence->refused_at + kRetryTicks && sequence->refused_at > 0) return;
  if (random_.OneIn(4)) return;
  if (sequence->sent.length < sequence->sent.given) {
    PlanPrompt(sequence);
  } else {
    PlanDecode(sequence);
  }
}

// The begin's tokens have not all entered.
void Client::PlanPrompt(const SequencePtr& sequence) {
  const Lengths& sent = sequence->sent;
  switch (random_.Below(20)) {
    case 0:
      AddTruncate(sequence);
      return;
    case 1:
      AddFork(sequence);
      return;
    case 2:
      AddAdvance(sequence);
      return;
    case 3:
    case 4:
    case 5:
      AddCommit(sequence);
      return;
    case 6:
    case 7:
      AddExtend(sequence, sent.given + random_.Below(8));
      return;
    default:
      AddExtend(sequence, std::min(sent.given, sent.length + 1 + random_.Below(10)));
  }
}

void Client::PlanDecode(const SequencePtr& sequence) {
  switch (random_.Below(28)) {
    case 0:
      AddTruncate(sequence);
      return;
    case 1:
      AddFork(sequence);
      return;
    case 2:
    case 3:
      AddExtend(sequence, sequence->sent.length + random_.Below(12));
      return;
    case 4:
      AddCommit(sequence);
      return;
    default:
      AddAdvance(sequence);
  }
}

}  // namespace quire::simulation
