#include "worker/client/step_ledger.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/client/proto_convert.h"

namespace quire::client {

LedgerEntry& StepLedger::Add(Step step) {
  LedgerEntry& entry = unanswered_.emplace_back();
  ToProto(step, entry.batch);
  entry.batch.set_step(next_++);
  entry.step = std::move(step);
  return entry;
}

void StepLedger::Applied() {
  applied_ = unanswered_.front().batch.step();
  unanswered_.pop_front();
}

absl::Status StepLedger::Complete(StepNumber step) {
  if (step > applied_) {
    return absl::InvalidArgumentError(
        absl::StrCat("step ", step, " cannot be complete: applied up to ", applied_));
  }
  completed_ = std::max(completed_, step);
  return absl::OkStatus();
}

void StepLedger::Stamp(v1::StepBatch& batch) const {
  batch.set_applied_step(applied_);
  batch.set_completed_step(completed_);
}

}  // namespace quire::client
