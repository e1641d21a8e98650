// Leases, dead workers and quarantine (P11).
#include <algorithm>
#include <array>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cache_service/engine/engine_core.h"
#include "cache_service/engine/fault.h"

namespace quire {
namespace {

// Enough to tell one from several.
constexpr size_t kMostFingerprints = 2;

LeaseId RandomLeaseId() {
  std::random_device device;
  std::array<uint32_t, 4> words{};
  for (uint32_t& word : words) word = device();
  return absl::StrFormat("%08x%08x%08x%08x", words[0], words[1], words[2], words[3]);
}

// A caller without a tenant acts for all.
bool MayActFor(CallerTenant caller, const WorkerState& worker) {
  return !caller.has_value() || (worker.tenant.has_value() && *worker.tenant == *caller);
}

}  // namespace

absl::StatusOr<WorkerState*> EngineCore::FindLease(const LeaseId& lease, Epoch epoch,
                                                   CallerTenant caller) {
  if (epoch != options_.epoch) {
    return ToStatus(MakeError(Reason::kEpochMismatch,
                              "the server has restarted since this lease was given",
                              {{"epoch", options_.epoch}, {"given", epoch}}));
  }
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
    return ToStatus(InvalidArgument("worker", "1 to 255 bytes", {{"limit", 255}}));
  }
  if (params.model_fingerprint.empty() || params.model_fingerprint.size() > 1024) {
    return ToStatus(InvalidArgument("model_fingerprint", "1 to 1024 bytes", {{"limit", 1024}}));
  }
  if (params.lease_duration && *params.lease_duration <= Duration::zero()) {
    return ToStatus(InvalidArgument("lease_duration", "must be positive",
                                    {{"given_ns", params.lease_duration->count()}}));
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
    return ToStatus(
        MakeError(Reason::kLimitExceeded, "too many leases", {{"limit", options_.max_leases}}));
  }
  if (options_.memory == PoolMemoryKind::kWorker && !leases_.empty()) {
    return ToStatus(MakeError(Reason::kLimitExceeded,
                              "the pool's memory belongs to another worker while that is attached",
                              {{"limit", 1}}));
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
    return ToStatus(
        InvalidArgument("completed_step", "beyond the last step", {{"limit", worker.last_step}}));
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
  return static_cast<uint32_t>(live_sequences_);
}

// --- The end of a lease ---

// The sequences end: public content stays, pending content goes. What the worker may still write is
// quarantined.
void EngineCore::EndLease(WorkerState& worker) {
  ended_leases_.push_back(worker.lease_number);
  std::vector<BlockId> written;
  DropPending(worker, written);
  for (const Sequence* sequence : BySerial(worker)) {
    for (const std::vector<BlockId>& table : sequence->tables) {
      for (const BlockId block : table) {
        if (block != kNoBlock) written.push_back(block);
      }
    }
  }
  counters_.blocks_reclaimed += pool_.HeldBy(worker.slot);
  for (Sequence* sequence : BySerial(worker)) EndSequence(*sequence, false);
  for (const LogEntry& entry : worker.log) {
    if (entry.kind == LogKind::kCopied) Unhold(entry.block);
    if (entry.kind == LogKind::kReleased) {
      pool_.EndFence(entry.block, worker.slot, kUnreportedStep);
    }
  }
  for (const BlockId block : worker.unreported_releases) {
    pool_.EndFence(block, worker.slot, kUnreportedStep);
  }
  if (Injected(Fault::kCopiesNotQuarantined)) {
    for (const LogEntry& entry : worker.log) {
      if (entry.kind == LogKind::kCopied) std::erase(written, entry.block);
    }
  }
  QuarantineBlocks(worker, written);
  leases_.erase(worker.lease);
  worker_names_.erase(worker.name);
  const WorkerSlot slot = worker.slot;
  pool_.RemoveWorker(slot);
  workers_[slot].reset();
  if (options_.memory == PoolMemoryKind::kWorker) Flush();
  CheckQuarantines();
  FitClaims();
}

std::vector<Sequence*> EngineCore::BySerial(const WorkerState& worker) {
  std::vector<Sequence*> sequences;
  for (const auto& [handle, sequence] : worker.sequences) sequences.push_back(sequence.get());
  std::sort(sequences.begin(), sequences.end(),
            [](const Sequence* a, const Sequence* b) { return a->serial < b->serial; });
  return sequences;
}

// Deepest first; collects what was sealed, copied or freed in steps that are not complete.
void EngineCore::DropPending(WorkerState& worker, std::vector<BlockId>& written) {
  for (auto entry = worker.log.rbegin(); entry != worker.log.rend(); ++entry) {
    const Block& block = pool_.Get(entry->block);
    const bool sealed_here = entry->kind == LogKind::kSealed &&
                             block.Has(kPendingFlag | kDeadFlag) && block.owner == worker.slot &&
                             block.seal_step == static_cast<uint32_t>(entry->step);
    const bool released_here =
        entry->kind == LogKind::kReleased && pool_.FenceStep(entry->block, worker.slot) > 0;
    if (sealed_here || released_here || entry->kind == LogKind::kCopied) {
      written.push_back(entry->block);
    }
    if (sealed_here && block.Has(kDeadFlag)) {
      pool_.ForgetDead(entry->block);
      continue;
    }
    if (!sealed_here || block.node == kNoNode) continue;
    const NodeId node = block.node;
    const uint32_t group = block.group;
    if (block.Has(kVariantFlag)) {
      ShrinkVariant(node, worker.slot, group);
      TakeOut(entry->block);
      RemoveGhosts(node);
      continue;
    }
    TakeOut(entry->block);
    tree_.SetBlock(node, group, kNoBlock);
    bool empty = true;
    for (uint32_t g = 0; g < groups(); ++g) empty = empty && tree_.BlockOf(node, g) == kNoBlock;
    if (empty) RemoveNode(node);
  }
  for (const BlockId block : worker.unreported_releases) written.push_back(block);
}

void EngineCore::QuarantineBlocks(const WorkerState& worker, const std::vector<BlockId>& written) {
  if (options_.memory == PoolMemoryKind::kWorker || !worker.map_memory) return;
  if (seams_.mappings == nullptr || seams_.mappings->IsGone(worker.lease_number)) return;
  Quarantine quarantine{worker.name, worker.incarnation, worker.lease_number, now_, {}};
  for (const BlockId block : written) {
    const Block& record = pool_.Get(block);
    // What is in the tree was complete before: the dead worker only reads it.
    if (record.node != kNoNode || record.table_refs > 0 || record.holds > 0 ||
        record.Has(kQuarantineFlag | kDeadFlag)) {
      continue;
    }
    pool_.Mut(block).Set(kQuarantineFlag, true);
    pool_.Settle(block);
    quarantine.blocks.push_back(block);
  }
  if (!quarantine.blocks.empty()) quarantines_.push_back(std::move(quarantine));
}

void EngineCore::CheckQuarantines() {
  for (Quarantine& quarantine : quarantines_) {
    const bool waited =
        Injected(Fault::kQuarantineByTime) && now_ - quarantine.since > options_.fence_timeout;
    const bool mapped =
        seams_.mappings != nullptr && !seams_.mappings->IsGone(quarantine.lease_number);
    if (mapped && !waited) continue;
    for (const BlockId block : quarantine.blocks) {
      pool_.Mut(block).Set(kQuarantineFlag, false);
      pool_.Settle(block);
    }
    quarantine.blocks.clear();
  }
  std::erase_if(quarantines_, [](const Quarantine& q) { return q.blocks.empty(); });
}

// --- Time ---

void EngineCore::ApplyDue() {
  now_ = clock_.Now();
  if (last_beat_ != TimePoint::max() &&
      now_ - last_beat_ > options_.heartbeat + options_.pause_threshold) {
    // The whole process stood still; nobody could renew meanwhile.
    const Duration pause = now_ - last_beat_;
    for (const auto& worker : workers_) {
      if (worker != nullptr) worker->deadline = AddSaturating(worker->deadline, pause);
    }
    last_beat_ = now_;
  }
  pool_.SetNow(now_,
               static_cast<uint32_t>(
                   std::chrono::duration_cast<std::chrono::milliseconds>(now_ - start_).count()));
  pool_.ExpireRetention(now_);
  if (now_ >= next_pin_deadline_) {
    next_pin_deadline_ = TimePoint::max();
    for (auto pin = pins_.begin(); pin != pins_.end();) {
      const auto next = std::next(pin);
      if (pin->second.deadline <= now_) {
        EndPin(pin);
      } else {
        next_pin_deadline_ = std::min(next_pin_deadline_, pin->second.deadline);
      }
      pin = next;
    }
  }
  if (now_ < next_lease_deadline_) return;
  next_lease_deadline_ = TimePoint::max();
  for (size_t slot = 1; slot < workers_.size(); ++slot) {
    if (workers_[slot] == nullptr) continue;
    if (workers_[slot]->deadline <= now_) {
      ++counters_.leases_expired;
      EndLease(*workers_[slot]);
    } else {
      next_lease_deadline_ = std::min(next_lease_deadline_, workers_[slot]->deadline);
    }
  }
}

TimePoint EngineCore::RunMaintenance() {
  ApplyDue();
  CheckQuarantines();
  TimePoint next =
      std::min({next_lease_deadline_, next_pin_deadline_, pool_.NextRetentionExpiry()});
  if (!checks_.idle()) next = now_;
  if (!quarantines_.empty()) {
    next = std::min(next, AddSaturating(now_, options_.quarantine_poll));
  }
  if (options_.heartbeat > Duration::zero()) {
    last_beat_ = now_;
    next = std::min(next, AddSaturating(now_, options_.heartbeat));
  }
  return next;
}

std::vector<uint64_t> EngineCore::TakeEndedLeases() { return std::exchange(ended_leases_, {}); }

}  // namespace quire
