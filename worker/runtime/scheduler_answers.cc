// How answers change branches, and what is done about shortage and lost leases.
#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "worker/runtime/scheduler.h"

namespace quire::runtime {
namespace {

// The only running request gives its blocks back after so many answers in a row that refuse it to
// grow: another worker's older sequence may be waiting for them. So does the youngest of those with
// claims, whose shortage ends with copies that run and with requests that end. Answers count, not
// time: where everything is slow, nobody gives way to nobody.
constexpr uint32_t kGiveWay = 50;

// A request that runs alone and had to give way so often will never fit.
constexpr uint32_t kMostPreemptions = 30;

// Between begins at a server that drains; its successor ends the wait.
constexpr Duration kDrainingPause = std::chrono::milliseconds(100);

bool IsShortage(const Error& error) {
  return error.reason == Reason::kPoolExhausted || error.reason == Reason::kLimitExceeded ||
         error.reason == Reason::kQuotaExceeded;
}

}  // namespace

void Scheduler::OnApplied(const client::AppliedStep& applied) {
  const client::StepAnswer& answer = applied.answer;
  CountEvictions(answer);
  if (const auto found = issued_.find(answer.step); found != issued_.end()) {
    const std::vector<Issued> issued = std::move(found->second);
    issued_.erase(found);
    for (const Issued& operation : issued) OnAnswer(operation, answer);
  }
  // What its own incomplete steps hold may still come back.
  if (std::exchange(refused_, false) && unreported_.empty()) ++refused_answers_;
  for (const client::SequenceNotice& notice : answer.notices) OnNotice(notice);
  unreported_.push_back({answer.step, queue_.Marker()});
  ReportPassed();
}

void Scheduler::OnAnswer(const Issued& issued, const client::StepAnswer& answer) {
  const client::OperationFailure* failure = answer.FailureOf(issued.id);
  if (failure != nullptr && IsShortage(failure->error)) ++stats_.shortages;
  if (issued.kind == IssuedKind::kRelease) {
    --releases_in_flight_;
    work_.grow_at = work_.begin_at = clock_.Now();
    return;
  }
  Branch& branch = *issued.branch;
  if (branch.handle != issued.handle) return;
  switch (issued.kind) {
    case IssuedKind::kBegin:
      if (failure != nullptr) {
        OnBeginFailed(issued, failure->error);
      } else if (const client::BeginResult* begun = answer.BeginOf(issued.id)) {
        OnBegun(issued, *begun);
      }
      break;
    case IssuedKind::kFork:
      if (failure != nullptr) {
        branch.Reset();
      } else {
        branch.state = BranchState::kActive;
        branch.parent = nullptr;
      }
      break;
    case IssuedKind::kGrow:
      OnGrown(issued, failure);
      break;
    default:
      // Tokens enter whatever happens: their slots were held. Only the look-ahead may be short.
      if (failure != nullptr) branch.asked_slots = failure->reserved;
  }
}

void Scheduler::OnBegun(const Issued& issued, const client::BeginResult& result) {
  Branch& branch = *issued.branch;
  branch.state = BranchState::kActive;
  branch.growing = branch.stalled = false;
  branch.entered = branch.asked_slots = result.length;
  branch.computed = branch.committed = result.reused_tokens;
  stuck_since_ = TimePoint::max();
  refused_answers_ = 0;
  if (!issued.run->begun()) {
    stats_.prompt_tokens += branch.given;
    stats_.reused_tokens += result.reused_tokens;
    stats_.copied_tokens += result.copied_tokens;
    issued.run->NoteReuse(result.reused_tokens);
    if (on_begun_ != nullptr) on_begun_(issued.run->request());
  }
}

void Scheduler::OnBeginFailed(const Issued& issued, const Error& error) {
  const std::shared_ptr<RequestRun> run = issued.run;
  issued.branch->Reset();
  if (error.reason == Reason::kDraining) return WaitForSuccessor(run);
  if (!IsShortage(error)) {
    Abandon(run, ToStatus(error));
    return;
  }
  uint64_t needed = 0;
  if (absl::SimpleAtoi(std::string(error.Detail("needed")), &needed) &&
      needed > client_.pool().block_count) {
    Abandon(run, ToStatus(error));
    return;
  }
  const TimePoint now = clock_.Now();
  work_.begin_at = now + options_.retry_interval;
  const bool holds_nothing =
      std::none_of(run->branches().begin(), run->branches().end(),
                   [](const auto& branch) { return branch->has_sequence(); });
  if (!holds_nothing) {
    // The request's other branches may be waiting for this one.
    issued.branch->stalled = refused_ = true;
    return;
  }
  if (std::erase(work_.running, run) > 0) PutBack(run);
  if (!work_.running.empty()) return;
  stuck_since_ = std::min(stuck_since_, now);
  if (now - stuck_since_ < options_.begin_patience) return;
  stuck_since_ = TimePoint::max();
  Abandon(run, ToStatus(error));
}

// What runs may end, nothing begins: the request gives its other branches up, because the server
// ends when its last sequence has ended.
void Scheduler::WaitForSuccessor(const std::shared_ptr<RequestRun>& run) {
  work_.begin_at = clock_.Now() + kDrainingPause;
  if (on_begun_ != nullptr && !run->begun()) on_begun_(run->request());
  SendBack(run);
}

void Scheduler::OnGrown(const Issued& issued, const client::OperationFailure* failure) {
  Branch& branch = *issued.branch;
  branch.growing = false;
  const client::SequenceState* state = client_.tables().Find(branch.handle);
  if (state == nullptr) return;
  // Until all given tokens have entered, nothing but this operation changes the length.
  if (branch.entered < branch.given) branch.entered = state->length;
  branch.stalled = failure != nullptr;
  if (failure == nullptr) {
    stuck_since_ = TimePoint::max();
    refused_answers_ = 0;
    return;
  }
  refused_ = true;
  branch.asked_slots = state->reserved;
  work_.grow_at = clock_.Now() + options_.retry_interval;
}

void Scheduler::OnNotice(const client::SequenceNotice& notice) {
  if (notice.error.reason != Reason::kContentMismatch) return;
  for (const auto& run : work_.running) {
    for (const auto& branch : run->branches()) {
      if (branch->handle != notice.sequence) continue;
      const std::shared_ptr<RequestRun> hit = run;
      Preempt(hit);
      return;
    }
  }
}

// Blocks that became entries beyond those that left the free list were idle content before.
void Scheduler::CountEvictions(const client::StepAnswer& answer) {
  const client::PoolCounts before = std::exchange(pool_counts_, answer.pool);
  if (!std::exchange(pool_counts_known_, true)) return;
  if (answer.pool.free > 0 || answer.pool.evictable >= before.evictable) return;
  uint64_t entries = 0;
  uint64_t reused = 0;
  for (const client::TableRun& run : answer.table) entries += run.blocks.size();
  for (const client::BeginResult& begin : answer.begins) {
    reused += (begin.reused_tokens - begin.copied_tokens) / client_.pool().block_tokens *
              client_.pool().groups.size();
  }
  const uint64_t fresh = entries > reused ? entries - reused : 0;
  const uint64_t gone = before.evictable - answer.pool.evictable;
  stats_.evicted_blocks += std::min(gone, fresh > before.free ? fresh - before.free : 0);
}

// The oldest waits in front.
void Scheduler::PutBack(const std::shared_ptr<RequestRun>& run) {
  const auto younger = [&run](const auto& other) { return other->started() > run->started(); };
  auto& waiting = work_.waiting;
  waiting.insert(std::find_if(waiting.begin(), waiting.end(), younger), run);
}

void Scheduler::SendBack(const std::shared_ptr<RequestRun>& run) {
  for (const auto& branch : run->branches()) {
    if (branch->state == BranchState::kDone) continue;
    if (branch->has_sequence()) ReleaseBranch(run, *branch);
    run->OnPreempted(*branch);
    branch->Reset();
  }
  if (std::erase(work_.running, run) > 0) PutBack(run);
}

void Scheduler::Preempt(const std::shared_ptr<RequestRun>& run) {
  SendBack(run);
  run->CountPreemption();
  ++stats_.preemptions;
}

void Scheduler::RelieveShortage() {
  const auto stalled = [](const std::shared_ptr<RequestRun>& run) {
    return std::any_of(run->branches().begin(), run->branches().end(),
                       [](const auto& branch) { return branch->stalled; });
  };
  if (releases_in_flight_ > 0 || !work_.releases.empty()) return;
  if (std::none_of(work_.running.begin(), work_.running.end(), stalled)) return;
  const std::shared_ptr<RequestRun> youngest = work_.running.back();
  const bool alone = work_.running.size() == 1;
  if (alone || options_.admission == Admission::kGuaranteed) {
    if (refused_answers_ < kGiveWay) return;
    refused_answers_ = 0;
  }
  if (alone) {
    work_.begin_at = clock_.Now() + options_.retry_interval;
    if (youngest->preemptions() >= kMostPreemptions) {
      Abandon(youngest, absl::ResourceExhaustedError(
                            absl::StrCat("gave its blocks back ", youngest->preemptions(),
                                         " times and still does not fit")));
      return;
    }
  }
  Preempt(youngest);
}

void Scheduler::Abandon(const std::shared_ptr<RequestRun>& run, const absl::Status& status) {
  for (const auto& branch : run->branches()) {
    if (branch->has_sequence()) ReleaseBranch(run, *branch);
    branch->state = BranchState::kDone;
  }
  std::erase(work_.running, run);
  std::erase(work_.waiting, run);
  results_.push_back(run->Abandon(status, clock_.Now()));
  ++stats_.failed_requests;
}

// The server forgot this worker, or it forgot everything: begin again under a new lease.
absl::Status Scheduler::StartOver(const absl::Status& cause) {
  ++stats_.lost_leases;
  queue_.Drain();
  unreported_.clear();
  issued_.clear();
  releases_in_flight_ = 0;
  refused_answers_ = 0;
  work_.releases.clear();
  pool_counts_known_ = false;
  while (!work_.running.empty()) {
    const std::shared_ptr<RequestRun> run = work_.running.back();
    work_.running.pop_back();
    for (const auto& branch : run->branches()) {
      if (branch->state == BranchState::kDone) continue;
      run->OnPreempted(*branch);
      branch->Reset();
    }
    PutBack(run);
  }
  if (unfinished() == 0) leases_.Fruit();
  return AttachAgain(cause);
}

// The server, or a rank, may be lost again meanwhile.
absl::Status Scheduler::AttachAgain(const absl::Status& cause) {
  absl::Status why = cause;
  while (client::EndsLease(why)) {
    executor_->Unmap();
    if (absl::Status over = leases_.Ended(why); !over.ok()) return over;
    std::this_thread::sleep_for(leases_.pause());
    const absl::Status attached =
        Blocked(stats_.blocked.other, [&] { return client_.Reattach(why); });
    if (!attached.ok()) return attached;
    why = executor_->Map(client_);
  }
  return why;
}

}  // namespace quire::runtime
