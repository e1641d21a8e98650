// Leases: attach, renew, detach (P11).
#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "cache_service/base/random_number.h"
#include "cache_service/engine/engine_core.h"

namespace quire {
namespace {

// Enough to tell one from several.
constexpr size_t kMostFingerprints = 2;

LeaseId RandomLeaseId() { return absl::StrFormat("%016x%016x", RandomNumber(), RandomNumber()); }

// A caller without a tenant acts for all.
bool MayActFor(CallerTenant caller, const WorkerState& worker) {
  return !caller.has_value() || (worker.tenant.has_value() && *worker.tenant == *caller);
}

}  // namespace

absl::StatusOr<WorkerState*> EngineCore::FindLease(const LeaseId& lease, Epoch epoch,
                                                   CallerTenant caller) {
  if (Error error = CheckEpoch(options_.epoch, epoch); !error.ok()) return ToStatus(error);
  const auto found = leases_.find(lease);
  if (found == leases_.end() || !MayActFor(caller, *workers_[found->second])) {
    return ToStatus(MakeError(Reason::kLeaseExpired, "the lease is unknown or has ended"));
  }
  return workers_[found->second].get();
}

WorkerSlot EngineCore::NewSlot() {
  for (size_t slot = 1; slot < workers_.size(); ++slot) {
    if (workers_[slot] == nullptr) return static_cast<WorkerSlot>(slot);
  }
  workers_.emplace_back();
  return static_cast<WorkerSlot>(workers_.size() - 1);
}

absl::StatusOr<AttachResult> EngineCore::Attach(const AttachParams& params) {
  ApplyDue();
  if (params.worker.empty() || params.worker.size() > 255) {
    return ToStatus(
        InvalidArgument("worker", "1 to 255 bytes",
                        {{"given", params.worker.size()}, {"limit", 255}, {"unit", "bytes"}}));
  }
  if (params.model_fingerprint.empty() || params.model_fingerprint.size() > 1024) {
    return ToStatus(InvalidArgument(
        "model_fingerprint", "1 to 1024 bytes",
        {{"given", params.model_fingerprint.size()}, {"limit", 1024}, {"unit", "bytes"}}));
  }
  if (params.lease_duration && *params.lease_duration <= Duration::zero()) {
    return ToStatus(InvalidArgument("lease_duration", "must be positive",
                                    {{"given", params.lease_duration->count()}, {"unit", "ns"}}));
  }
  if (draining_) {
    return ToStatus(MakeError(Reason::kDraining, "the server admits no workers"));
  }
  if (const auto known = worker_names_.find(params.worker); known != worker_names_.end()) {
    WorkerState& worker = *workers_[known->second];
    if (!MayActFor(params.tenant, worker)) {
      return ToStatus(MakeError(Reason::kPermissionDenied,
                                "a worker of another tenant has this name", {{"field", "worker"}}));
    }
    if (params.incarnation < worker.incarnation) {
      return ToStatus(
          MakeError(Reason::kStaleIncarnation, "a higher incarnation of this worker is attached",
                    {{"incarnation", worker.incarnation}, {"given", params.incarnation}}));
    }
    if (params.incarnation == worker.incarnation) {
      worker.deadline = AddSaturating(now_, worker.lease_duration);
      return AttachResult{worker.lease, worker.lease_number, worker.lease_duration,
                          worker.last_step + 1, true};
    }
    ++counters_.leases_displaced;
    EndLease(worker);
  }
  if (leases_.size() >= options_.max_leases) {
    return ToStatus(LimitExceeded("leases", "too many", leases_.size() + 1, options_.max_leases));
  }
  if (options_.memory == PoolMemoryKind::kWorker && !leases_.empty()) {
    return ToStatus(LimitExceeded(
        "leases", "the pool's memory belongs to another worker while that is attached", 2, 1));
  }
  auto owned = std::make_unique<WorkerState>();
  WorkerState& worker = *owned;
  worker.slot = NewSlot();
  worker.name = params.worker;
  worker.incarnation = params.incarnation;
  worker.model_fingerprint = params.model_fingerprint;
  worker.tenant = params.tenant;
  worker.lease = RandomLeaseId();
  worker.lease_number = next_lease_number_++;
  worker.lease_duration =
      std::min(params.lease_duration.value_or(options_.default_lease), options_.max_lease);
  worker.deadline = AddSaturating(now_, worker.lease_duration);
  worker.completed_at = now_;
  worker.map_memory = params.map_memory;
  worker.lock_step = params.lock_step;
  next_lease_deadline_ = std::min(next_lease_deadline_, worker.deadline);
  leases_[worker.lease] = worker.slot;
  worker_names_[worker.name] = worker.slot;
  pool_.AddWorker(worker.slot);
  workers_[worker.slot] = std::move(owned);
  if (fingerprints_.size() < kMostFingerprints) fingerprints_.insert(worker.model_fingerprint);
  ++counters_.leases_granted;
  return AttachResult{worker.lease, worker.lease_number, worker.lease_duration, 1, false};
}

absl::StatusOr<RenewResult> EngineCore::Renew(const RenewParams& params) {
  ApplyDue();
  absl::StatusOr<WorkerState*> found = FindLease(params.lease, params.epoch, params.caller);
  if (!found.ok()) return found.status();
  WorkerState& worker = **found;
  StepNumber applied = params.applied_step;
  StepNumber completed = params.completed_step;
  if (worker.lock_step) applied = completed = worker.last_step;
  if (completed > applied || applied > worker.last_step) {
    return ToStatus(InvalidArgument("applied_step",
                                    "completed_step <= applied_step <= last step does not hold",
                                    {{"completed_step", completed},
                                     {"applied_step", applied},
                                     {"last_step", worker.last_step}}));
  }
  worker.deadline = AddSaturating(now_, worker.lease_duration);
  worker.applied_step = std::max(worker.applied_step, applied);
  while (!worker.answers.empty() && worker.answers.front().step <= worker.applied_step) {
    worker.answers.pop_front();
  }
  Complete(worker, completed);
  FitClaims();
  return RenewResult{worker.lease_duration, worker.last_step + 1, draining_};
}

absl::Status EngineCore::Detach(const LeaseId& lease, Epoch epoch, StepNumber completed_step,
                                CallerTenant caller) {
  ApplyDue();
  absl::StatusOr<WorkerState*> found = FindLease(lease, epoch, caller);
  if (!found.ok()) return found.status();
  WorkerState& worker = **found;
  if (worker.lock_step) completed_step = worker.last_step;
  if (completed_step > worker.last_step) {
    return ToStatus(InvalidArgument("completed_step", "beyond the last step",
                                    {{"given", completed_step}, {"limit", worker.last_step}}));
  }
  Complete(worker, completed_step);
  EndLease(worker);
  return absl::OkStatus();
}

void EngineCore::StreamBroken(const LeaseId& lease) {
  ApplyDue();
  const auto found = leases_.find(lease);
  if (found == leases_.end()) return;
  WorkerState& worker = *workers_[found->second];
  worker.deadline = std::min(worker.deadline, AddSaturating(now_, options_.stream_grace));
  next_lease_deadline_ = std::min(next_lease_deadline_, worker.deadline);
}

absl::StatusOr<uint32_t> EngineCore::EndWorker(std::string_view name) {
  ApplyDue();
  const auto found = worker_names_.find(std::string(name));
  if (found == worker_names_.end()) {
    return ToStatus(WorkerNotFound(name));
  }
  WorkerState& worker = *workers_[found->second];
  const auto sequences = static_cast<uint32_t>(worker.sequences.size());
  EndLease(worker);
  return sequences;
}

uint32_t EngineCore::StartDraining() {
  ApplyDue();
  draining_ = true;
  while (!pins_.empty()) EndPin(pins_.begin());
  FitClaims();
  return static_cast<uint32_t>(live_sequences_);
}

}  // namespace quire
