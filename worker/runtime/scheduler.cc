#include "worker/runtime/scheduler.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/runtime/local_executor.h"

namespace quire::runtime {
Scheduler::Scheduler(client::CacheClient& client, std::unique_ptr<Executor> executor,
                     const SchedulerOptions& options, const Clock& clock)
    : client_(client),
      executor_(std::move(executor)),
      queue_(*executor_, options.lag > 0),
      options_(options),
      clock_(clock),
      planner_(options, client.pool(), client.tables(), stats_) {}

absl::StatusOr<std::unique_ptr<Scheduler>> Scheduler::Create(client::CacheClient& client,
                                                             model::Transformer& model,
                                                             const SchedulerOptions& options,
                                                             const Clock& clock) {
  return Create(client, std::make_unique<LocalExecutor>(model, model::KernelChoice{}), options,
                clock);
}

absl::StatusOr<std::unique_ptr<Scheduler>> Scheduler::Create(client::CacheClient& client,
                                                             std::unique_ptr<Executor> executor,
                                                             const SchedulerOptions& options,
                                                             const Clock& clock) {
  if (absl::Status status = Validate(options); !status.ok()) return status;
  if (absl::Status status = executor->Map(client); !status.ok()) return status;
  std::unique_ptr<Scheduler> scheduler(new Scheduler(client, std::move(executor), options, clock));
  client.set_copy_executor([raw = scheduler.get()](std::span<const client::CopyOrder> orders) {
    return raw->CopyBlocks(orders);
  });
  return scheduler;
}

absl::Status Scheduler::CopyBlocks(std::span<const client::CopyOrder> orders) {
  stats_.copy_orders += orders.size();
  return queue_.Copy(orders);
}

void Scheduler::Add(Request request) {
  auto run = std::make_shared<RequestRun>(std::move(request), clock_.Now(), options_.record_logits);
  const Request& added = run->request();
  const uint64_t most = client_.pool().max_sequence_tokens;
  if (added.prompt.empty() || added.new_tokens == 0 || added.width == 0 ||
      added.prompt.size() + added.new_tokens > most) {
    results_.push_back(run->Abandon(absl::InvalidArgumentError(absl::StrCat(
                                        added.prompt.size(), " prompt and ", added.new_tokens,
                                        " new tokens, at most ", most, " together")),
                                    clock_.Now()));
    ++stats_.failed_requests;
    return;
  }
  work_.waiting.push_back(std::move(run));
}

std::vector<RequestResult> Scheduler::TakeResults() { return std::exchange(results_, {}); }

bool Scheduler::idle() const {
  return unfinished() == 0 && work_.releases.empty() && client_.in_flight() == 0 &&
         queue_.launches() == 0 && unreported_.empty();
}

absl::Status Scheduler::RunOnce() {
  const absl::Status status = Round();
  return client::EndsLease(status) ? StartOver(status) : status;
}

absl::Status Scheduler::Round() {
  if (absl::Status status = ApplyArrived(); !status.ok()) return status;
  if (absl::Status status = DeliverFinished(); !status.ok()) return status;
  RelieveShortage();
  const uint32_t depth = std::min(options_.steps_in_flight, client_.pool().max_steps_in_flight);
  while (client_.in_flight() >= depth || !client_.CanSubmit()) {
    if (absl::Status status = WaitForAnswer(); !status.ok()) return status;
  }
  if (!client_.MayLaunch()) return AskWhetherItAnswers();
  Plan plan = planner_.MakePlan(work_, clock_.Now());
  const bool has_rows = !plan.rows.empty();
  if (absl::Status status = Send(plan); !status.ok()) return status;
  if (has_rows) return Launch(plan);
  if (queue_.launches() > 0) return DeliverNext(/*wait=*/true).status();
  return client_.in_flight() > 0 ? WaitForAnswer() : Idle();
}

Duration& Scheduler::WaitingPlace() {
  bool beginning = false;
  for (const auto& run : work_.running) {
    for (const auto& branch : run->branches()) {
      if (!branch->has_sequence()) continue;
      if (branch->state == BranchState::kActive && branch->entered > branch->given) {
        return stats_.blocked.decoding;
      }
      beginning = beginning || branch->state != BranchState::kDone;
    }
  }
  return beginning ? stats_.blocked.beginning : stats_.blocked.other;
}

absl::Status Scheduler::ApplyArrived() {
  for (;;) {
    absl::StatusOr<std::optional<client::AppliedStep>> applied = client_.Poll();
    if (!applied.ok()) return applied.status();
    if (!applied->has_value()) return absl::OkStatus();
    OnApplied(**applied);
  }
}

absl::Status Scheduler::WaitForAnswer() {
  absl::StatusOr<client::AppliedStep> applied =
      Blocked(WaitingPlace(), [this] { return client_.Wait(); });
  if (!applied.ok()) return applied.status();
  OnApplied(*applied);
  return absl::OkStatus();
}

absl::Status Scheduler::Send(Plan& plan) {
  if (plan.step.empty()) return absl::OkStatus();
  for (const Issued& issued : plan.issued) {
    releases_in_flight_ += issued.kind == IssuedKind::kRelease ? 1 : 0;
  }
  Duration& place = client_.submit_waits() ? WaitingPlace() : stats_.blocked.sending;
  absl::StatusOr<client::StepNumber> number =
      Blocked(place, [&] { return client_.Submit(std::move(plan.step)); });
  if (!number.ok()) return number.status();
  issued_[*number] = std::move(plan.issued);
  ++stats_.steps;
  return absl::OkStatus();
}

// Renewals are late. The answer to a step ends that, and the wait for one does not last for ever.
absl::Status Scheduler::AskWhetherItAnswers() {
  if (absl::Status status = client_.CheckLease(); !status.ok()) return status;
  if (client_.in_flight() == 0) {
    if (absl::Status status = client_.Submit(client::Step()).status(); !status.ok()) return status;
  }
  return WaitForAnswer();
}

// Nothing can be sent or launched now.
absl::Status Scheduler::Idle() {
  absl::StatusOr<bool> reported = client_.ReportCompletion();
  if (!reported.ok()) return reported.status();
  if (*reported) return WaitForAnswer();
  if (absl::Status status = client_.CheckLease(); !status.ok()) return status;
  if (unfinished() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  return absl::OkStatus();
}

void Scheduler::CollectFinished() {
  for (const auto& run : work_.running) {
    for (const auto& branch : run->branches()) {
      if (branch->state == BranchState::kDone && branch->has_sequence()) {
        ReleaseBranch(run, *branch);
      }
    }
  }
  std::erase_if(work_.running, [this](const std::shared_ptr<RequestRun>& run) {
    if (!run->done()) return false;
    results_.push_back(run->TakeResult(clock_.Now()));
    ++stats_.requests;
    for (const Generated& output : results_.back().outputs) {
      stats_.generated_tokens += output.tokens.size();
    }
    return true;
  });
}

void Scheduler::ReleaseBranch(const std::shared_ptr<RequestRun>& run, Branch& branch) {
  const client::SequenceState* state = client_.tables().Find(branch.handle);
  if (state != nullptr && !state->tables.empty()) {
    stats_.slots_at_end += state->tables[0].size() * client_.pool().block_tokens;
    stats_.tokens_at_end += state->length;
  }
  work_.releases.push_back({run, branch.handle, branch.entered, branch.computed, branch.committed});
  branch.handle = 0;
  branch.stalled = false;
}

}  // namespace quire::runtime
