// Numbers of steps: which are unanswered, applied, complete. Internal to worker/client.
#ifndef QUIRE_WORKER_CLIENT_STEP_LEDGER_H_
#define QUIRE_WORKER_CLIENT_STEP_LEDGER_H_

#include <cstdint>
#include <deque>
#include <memory>

#include "absl/status/status.h"
#include "cache_service/base/clock.h"
#include "quire/v1/cache_service.pb.h"
#include "worker/client/step.h"

namespace quire::client {

struct LedgerEntry {
  Step step;
  v1::StepBatch batch;
  TimePoint sent_at;
};

// A pure state machine; not thread-safe. At all times
// completed <= applied <= last sent, and last sent - applied <= max_in_flight.
class StepLedger {
 public:
  StepLedger(StepNumber expected_step, uint32_t max_in_flight)
      : next_(expected_step),
        applied_(expected_step - 1),
        completed_(expected_step - 1),
        max_in_flight_(max_in_flight) {}

  bool full() const { return unanswered_.size() >= max_in_flight_; }

  bool idle() const { return unanswered_.empty(); }

  size_t in_flight() const { return unanswered_.size(); }

  // Gives the step its number and keeps it for a resend. Must not be full.
  LedgerEntry& Add(Step step);

  // The entry that the next answer must belong to. Must not be idle.
  LedgerEntry& front() { return unanswered_.front(); }

  // Unanswered steps, oldest first, to be sent again as they are but for their counters.
  std::deque<LedgerEntry>& unanswered() { return unanswered_; }

  // The answer of front() was applied.
  void Applied();

  // INVALID_ARGUMENT if `step` is not applied yet; an older value changes nothing.
  absl::Status Complete(StepNumber step);

  // Writes the present counters into a batch about to be sent.
  void Stamp(v1::StepBatch& batch) const;

  StepNumber applied() const { return applied_; }

  StepNumber completed() const { return completed_; }

  StepNumber last() const { return next_ - 1; }

 private:
  StepNumber next_;
  StepNumber applied_;
  StepNumber completed_;
  uint32_t max_in_flight_;
  std::deque<LedgerEntry> unanswered_;
};

}  // namespace quire::client

#endif  // QUIRE_WORKER_CLIENT_STEP_LEDGER_H_
