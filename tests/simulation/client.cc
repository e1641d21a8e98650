// Leases and messages of one worker process.
#include "tests/simulation/client.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace quire::simulation {

Client::Client(Shared& shared, const WorkerPlan& plan, ProcessId process, uint64_t incarnation,
               Device& device)
    : shared_(shared),
      random_(shared.random),
      plan_(plan),
      process_(process),
      incarnation_(incarnation),
      device_(device) {}

void Client::Run() {
  switch (state_) {
    case State::kDetached:
    case State::kAttaching:
      if (leaving_) {
        state_ = State::kExited;
      } else if (now() >= retry_at_) {
        SendAttach();
      }
      return;
    case State::kMapping:
      MapNext();
      return;
    case State::kAttached:
      Work();
      return;
    case State::kDropping:
      if (device_.idle()) UnmapNext();
      return;
    case State::kExited:
      return;
  }
}

void Client::Work() {
  if (memory_->IsRevoked(lease_number_)) {
    Drop("its lease word is revoked");
    return;
  }
  NoteDevice();
  ApplyAnswers();
  KeepStream();
  ResendLate();
  if (leaving_) Detach();
  if (!random_.OneIn(3)) SendStep();
  if (!random_.OneIn(4)) LaunchAll();
  Renew();
}

void Client::Leave(bool politely) {
  leaving_ = true;
  polite_ = politely;
}

void Client::Die() {
  if (stream_ != 0) shared_.network.BreakStream(stream_, now(), false);
  stream_ = 0;
}

void Client::EndMappings() {
  while (ranks_mapped_ > 0) {
    memory_->Unmap(lease_number_);
    --ranks_mapped_;
  }
}

// --- Attach ---

void Client::SendAttach() {
  if (state_ == State::kDetached) attach_since_ = now();
  state_ = State::kAttaching;
  retry_at_ = now() + 20 + random_.Below(20);
  Request request{.call = Call::kAttach, .process = process_, .sent_at = now()};
  request.attach.worker = plan_.name;
  request.attach.incarnation = incarnation_;
  request.attach.model_fingerprint = "model";
  request.attach.ranks = shared_.plan.ranks;
  request.attach.map_memory = plan_.map_memory;
  request.attach.lock_step = plan_.wire == Wire::kLockStep;
  if (random_.OneIn(2)) {
    request.attach.lease_duration = std::chrono::milliseconds(shared_.plan.lease);
  }
  shared_.network.Send(std::move(request), now());
}

void Client::OnAttached(const Reply& reply) {
  if (state_ != State::kAttaching || reply.sent_at < attach_since_) return;
  if (reply.reason == Reason::kStaleIncarnation) {
    state_ = State::kExited;
    return;
  }
  if (reply.reason == Reason::kDraining) return;
  if (reply.reason != Reason::kNone) {
    Violate("attach is refused: ", reply.message);
    return;
  }
  if (reply.memory->unlinked()) return;
  if (reply.attach.expected_step != 1) {
    Violate("a new lease starts at step ", reply.attach.expected_step);
  }
  lease_ = reply.attach.lease;
  lease_number_ = reply.attach.lease_number;
  memory_ = reply.memory;
  if (shared_.plan.engine.memory == PoolMemoryKind::kWorker) memory_ = OwnMemory();
  device_.Open(memory_, lease_number_, plan_.map_memory);
  last_sent_ = applied_ = completed_ = reported_ = 0;
  renewed_at_ = called_at_ = reply.sent_at;
  renewal_until_ = 0;
  state_ = plan_.map_memory ? State::kMapping : State::kAttached;
  Trace("attached, lease ", lease_number_, ", epoch ", memory_->epoch());
}

// Of the process and its lease alone.
std::shared_ptr<PoolMemory> Client::OwnMemory() const {
  EngineOptions options = shared_.plan.engine;
  options.epoch = memory_->epoch();
  return std::make_shared<PoolMemory>(options, shared_.plan.ranks);
}

void Client::MapNext() {
  if (random_.OneIn(2)) return;
  memory_->Map(lease_number_);
  if (++ranks_mapped_ == memory_->ranks()) state_ = State::kAttached;
}

// Nothing of the old life may run when the memory goes.
void Client::UnmapNext() {
  device_.TakeFinished();
  if (ranks_mapped_ > 0) {
    memory_->Unmap(lease_number_);
    --ranks_mapped_;
    return;
  }
  state_ = leaving_ ? State::kExited : State::kDetached;
  retry_at_ = now() + random_.Below(20);
}

void Client::Drop(const char* why) {
  Trace("drops its sequences: ", why);
  sequences_.clear();
  under_way_.clear();
  lease_.clear();
  if (stream_ != 0) shared_.network.BreakStream(stream_, now(), true);
  stream_ = 0;
  detaching_ = false;
  state_ = State::kDropping;
}

void Client::Detach() {
  const bool ready =
      polite_ ? sequences_.empty() && Quiet() : plan_.wire != Wire::kLockStep || Quiet();
  if (!ready || now() < retry_at_ || now() < renewal_until_) return;
  detaching_ = true;
  retry_at_ = now() + 30;
  shared_.network.Send(CallOf(Call::kDetach), now());
}

// --- Calls ---

Request Client::CallOf(Call call) const {
  Request request{.call = call, .process = process_, .sent_at = now()};
  request.lease = lease_;
  request.epoch = memory_->epoch();
  request.applied_step = applied_;
  request.completed_step = completed_;
  // The server takes each call of a lock-step worker for a report, so none may come late.
  if (plan_.wire == Wire::kLockStep) request.deadline = now() + shared_.plan.lease / 6;
  return request;
}

void Client::SendStepMessage(StepUnderWay& step) {
  Request request = CallOf(Call::kStep);
  if (plan_.wire == Wire::kStream) request.stream = stream_;
  request.step = step.number;
  request.content = step.content;
  if (random_.OneIn(8)) AddProbe(request);
  step.sent_at = called_at_ = now();
  reported_ = completed_;
  shared_.network.Send(std::move(request), now());
}

void Client::KeepStream() {
  if (plan_.wire != Wire::kStream || stream_ != 0 || now() < retry_at_) return;
  stream_ = shared_.network.OpenStream(process_);
  for (StepUnderWay& step : under_way_) {
    if (step.reply == nullptr) SendStepMessage(step);
  }
}

void Client::ResendLate() {
  const bool lock_step = plan_.wire == Wire::kLockStep;
  if (plan_.wire == Wire::kStream && stream_ == 0) return;
  if (plan_.wire != Wire::kStream) {
    const Tick patience =
        lock_step ? shared_.plan.lease / 6 : 4 * shared_.plan.network.longest_delay + 10;
    for (StepUnderWay& step : under_way_) {
      if (step.reply == nullptr && now() > step.sent_at + patience) SendStepMessage(step);
    }
  }
  // A repeat that was not needed does no harm.
  if (!lock_step && !under_way_.empty() && random_.OneIn(60)) {
    SendStepMessage(under_way_[random_.Below(static_cast<uint32_t>(under_way_.size()))]);
  }
}

void Client::Renew() {
  if (now() < renewal_until_ || detaching_ || state_ != State::kAttached) return;
  const bool lock_step = plan_.wire == Wire::kLockStep;
  if (lock_step && !Quiet()) return;
  const bool old =
      now() - renewed_at_ > shared_.plan.lease / 4 && now() - called_at_ > shared_.plan.lease / 16;
  const bool news = completed_ > reported_ && random_.OneIn(6);
  if (!old && !news) return;
  Request request = CallOf(Call::kRenew);
  if (lock_step) renewal_until_ = request.deadline + 1;
  shared_.network.Send(std::move(request), now());
  called_at_ = now();
  reported_ = completed_;
}

// --- Replies ---

void Client::Receive(std::shared_ptr<const Reply> reply) {
  if (reply->call == Call::kAttach) {
    OnAttached(*reply);
    return;
  }
  if (reply->call == Call::kStreamEnd) {
    if (stream_ == 0 || reply->stream != stream_) return;
    stream_ = 0;
    retry_at_ = now() + random_.Below(12);
    return;
  }
  if (state_ != State::kAttached || reply->lease != lease_) return;
  if (reply->reason != Reason::kNone) {
    OnError(*reply);
    return;
  }
  renewed_at_ = std::max(renewed_at_, reply->sent_at);
  if (reply->call == Call::kDetach) Drop("it is detached");
  if (reply->call == Call::kRenew) renewal_until_ = 0;
  if (reply->call != Call::kStep) return;
  for (StepUnderWay& step : under_way_) {
    if (step.number == reply->step && step.reply == nullptr) step.reply = std::move(reply);
    if (reply == nullptr) return;
  }
}

void Client::OnError(const Reply& reply) {
  if (reply.reason == Reason::kLeaseExpired || reply.reason == Reason::kEpochMismatch) {
    Drop(reply.message.c_str());
    return;
  }
  if (reply.call == Call::kStep) {
    OnStepError(reply);
    return;
  }
  Violate("a call is refused: ", reply.message);
}

void Client::OnStepError(const Reply& reply) {
  const auto step =
      std::find_if(under_way_.begin(), under_way_.end(), [&](const StepUnderWay& candidate) {
        return candidate.number == reply.step && candidate.reply == nullptr;
      });
  if (step == under_way_.end()) return;
  if (reply.reason != Reason::kStepOutOfOrder) {
    Violate("step ", reply.step, " is refused: ", reply.message);
    return;
  }
  if (reply.expected_step > reply.step) {
    Violate("step ", reply.step, " was handled, but its answer is not kept (P2): ", reply.message);
    return;
  }
  // Earlier ones did not arrive: they come again, in order.
  for (StepUnderWay& earlier : under_way_) {
    const bool missing = earlier.number >= reply.expected_step && earlier.reply == nullptr;
    if (missing && now() > earlier.sent_at + 4) SendStepMessage(earlier);
  }
}

}  // namespace quire::simulation
