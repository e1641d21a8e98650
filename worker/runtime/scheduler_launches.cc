// Launches: what is queued, what comes back, and which steps that completes.
#include <algorithm>
#include <utility>

#include "worker/runtime/scheduler.h"

namespace quire::runtime {

absl::Status Scheduler::Launch(Plan& plan) {
  if (absl::Status status = queue_.Launch(MakeJob(plan)); !status.ok()) return status;
  while (queue_.launches() > options_.lag) {
    if (absl::Status status = DeliverNext(/*wait=*/true).status(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

// From here on the branches are as after the launch, but for the tokens that it chooses.
std::unique_ptr<LaunchJob> Scheduler::MakeJob(Plan& plan) {
  auto job = std::make_unique<LaunchJob>();
  for (const PlannedRows& planned : plan.rows) AddRows(planned, *job);
  job->rows = std::move(plan.rows);
  return job;
}

void Scheduler::AddRows(const PlannedRows& planned, LaunchJob& job) {
  Branch& branch = *planned.branch;
  model::LaunchBatch& batch = job.order.batch;
  const auto own = planned.rows - static_cast<uint32_t>(planned.drafts.size());
  std::vector<TokenId> tokens(planned.rows, 0);
  if (planned.unknown) {
    job.inputs.push_back({static_cast<size_t>(batch.rows()), branch.chosen});
  } else {
    std::copy_n(branch.tokens.begin() + branch.computed, own, tokens.begin());
  }
  std::copy(planned.drafts.begin(), planned.drafts.end(), tokens.begin() + own);
  const int32_t first = batch.Add(static_cast<int32_t>(branch.computed), tokens.data(),
                                  static_cast<int32_t>(planned.rows));
  const client::SequenceState* state = client_.tables().Find(branch.handle);
  job.order.ids.push_back(state->tables);
  branch.computed += own;
  stats_.computed_tokens += own;
  stats_.unknown_rows += planned.unknown ? 1 : 0;
  if (planned.wants_logits) AddChoice(planned, first + static_cast<int32_t>(own) - 1, job);
}

void Scheduler::AddChoice(const PlannedRows& planned, int32_t row, LaunchJob& job) {
  Branch& branch = *planned.branch;
  std::vector<int32_t>& logit_rows = job.order.batch.logit_rows;
  const size_t first = logit_rows.size();
  for (size_t i = 0; i <= planned.drafts.size(); ++i) {
    logit_rows.push_back(row + static_cast<int32_t>(i));
  }
  ++branch.choosing;
  branch.drafting = !planned.drafts.empty();
  branch.chosen = std::make_shared<TokenId>();
  if (options_.lag == 0 || !planned.run->may_draft()) return;
  job.choices.push_back(
      {first, planned.run->request().sampling, {branch.sample, branch.computed}, branch.chosen});
}

absl::Status Scheduler::DeliverFinished() {
  for (;;) {
    const absl::StatusOr<bool> delivered = DeliverNext(/*wait=*/false);
    if (!delivered.ok()) return delivered.status();
    if (!*delivered) return absl::OkStatus();
  }
}

absl::StatusOr<bool> Scheduler::DeliverNext(bool wait) {
  absl::StatusOr<std::unique_ptr<LaunchJob>> job = queue_.Take(wait);
  if (!job.ok()) return job.status();
  ReportPassed();
  if (*job == nullptr) return false;
  if (absl::Status status = client_.CheckLease(); !status.ok()) return status;
  Deliver(**job);
  ++stats_.launches;
  CollectFinished();
  return true;
}

// A step is complete once the marker behind its copies has been passed.
void Scheduler::ReportPassed() {
  while (!unreported_.empty() && queue_.Passed(unreported_.front().marker)) {
    client_.Complete(unreported_.front().step).IgnoreError();
    unreported_.pop_front();
  }
}

void Scheduler::Deliver(const LaunchJob& job) {
  size_t row = 0;
  const auto width = static_cast<size_t>(executor_->config().vocabulary);
  const std::span<const float> logits(job.logits);
  for (const PlannedRows& planned : job.rows) {
    if (!planned.wants_logits) continue;
    // A branch that was preempted meanwhile computes this again.
    if (planned.branch->handle == planned.handle) {
      DeliverRows(planned, logits.subspan(row * width));
    }
    row += planned.drafts.size() + 1;
  }
}

// Gives the branch its logits, then those of each draft that was chosen after all.
void Scheduler::DeliverRows(const PlannedRows& planned, std::span<const float> logits) {
  leases_.Fruit();
  Branch& branch = *planned.branch;
  const size_t drafts = planned.drafts.size();
  const auto width = static_cast<size_t>(executor_->config().vocabulary);
  stats_.drafted_tokens += drafts;
  --branch.choosing;
  branch.drafting = false;
  for (size_t i = 0; i <= drafts; ++i) {
    const size_t before = branch.tokens.size();
    planned.run->OnLogits(branch, logits.subspan(i * width, width), clock_.Now());
    const bool goes_on = branch.state == BranchState::kActive && branch.tokens.size() > before;
    if (i == drafts || !goes_on || branch.tokens.back() != planned.drafts[i]) break;
    ++branch.computed;
    ++stats_.accepted_drafts;
  }
}

}  // namespace quire::runtime
