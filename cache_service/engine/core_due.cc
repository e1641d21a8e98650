// What is due by the clock: retention, pins, leases (E8).
#include <algorithm>
#include <iterator>

#include "cache_service/engine/engine_core.h"

namespace quire {

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
    FitClaims();
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
  FitClaims();
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

}  // namespace quire
