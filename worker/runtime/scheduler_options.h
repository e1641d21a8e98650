// How a Scheduler works, and what it counted.
#ifndef QUIRE_WORKER_RUNTIME_SCHEDULER_OPTIONS_H_
#define QUIRE_WORKER_RUNTIME_SCHEDULER_OPTIONS_H_

#include <chrono>
#include <cstdint>

#include "absl/status/status.h"
#include "cache_service/base/clock.h"
#include "worker/runtime/blocked_time.h"

namespace quire::runtime {

enum class Admission : uint8_t {
  // Each begin claims what its request may need: growth cannot fail and nothing is preempted; fewer
  // requests run at once.
  kGuaranteed,
  // A begin takes what it needs now; shortage later preempts the youngest request, which is
  // computed again.
  kBestEffort,
};

struct SchedulerOptions {
  Admission admission = Admission::kBestEffort;
  // Sequences that run at once. Low: idle hardware. High: more shortage and slower single streams.
  uint32_t max_sequences = 16;
  // Rows of one launch. Low: slow prefill. High: decoding sequences wait longer for their turn.
  uint32_t max_batch_tokens = 256;
  // Prompt tokens of one sequence per launch.
  uint32_t chunk_tokens = 128;
  // Unanswered steps, at most. 1: every launch waits for its own answer.
  uint32_t steps_in_flight = 4;
  // Launches that are queued before the values sampled by earlier ones are known. 0: each launch
  // has finished before the next step is sent.
  uint32_t lag = 0;
  // Tokens that prompt lookup proposes per launch and sequence. 0: no drafts. A sequence that has
  // proposals waits for its last token instead of running ahead of it by `lag`.
  uint32_t drafts = 0;
  // Keep the logits behind each generated token, for verification.
  bool record_logits = false;
  // Between attempts after a shortage.
  Duration retry_interval = std::chrono::milliseconds(20);
  // A request that cannot begin for this long although nothing else runs here fails.
  Duration begin_patience = std::chrono::seconds(30);
};

// INVALID_ARGUMENT naming the option.
absl::Status Validate(const SchedulerOptions& options);

// Slots that `ahead` must hold so that no launch waits for an answer: with k drafts, `lag` launches
// whose value is not known when a step is sent, and d launches between sending a step and applying
// its answer, (1 + k)(lag + d + 1) - 1.
constexpr uint32_t LookAhead(uint32_t drafts, uint32_t lag, uint32_t steps_in_flight) {
  return (1 + drafts) * (lag + steps_in_flight + 1) - 1;
}

struct SchedulerStats {
  uint64_t requests = 0;
  uint64_t failed_requests = 0;
  // Of first begins, so that recomputation does not count as a hit.
  uint64_t prompt_tokens = 0;
  uint64_t reused_tokens = 0;
  uint64_t copied_tokens = 0;
  uint64_t computed_tokens = 0;
  uint64_t generated_tokens = 0;
  uint64_t drafted_tokens = 0;
  uint64_t accepted_drafts = 0;
  uint64_t steps = 0;
  uint64_t launches = 0;
  uint64_t begins = 0;
  uint64_t forks = 0;
  uint64_t copy_orders = 0;
  uint64_t shortages = 0;
  uint64_t preemptions = 0;
  // Launches that a decoding sequence missed because its slot was not held yet.
  uint64_t launch_waits = 0;
  // Rows computed before their token was known here.
  uint64_t unknown_rows = 0;
  uint64_t lost_leases = 0;
  // While requests were unfinished.
  BlockedTime blocked{};
  // New table entries that the pool's free blocks cannot explain: content that was evicted for
  // them.
  uint64_t evicted_blocks = 0;
  // Slots of the tables and tokens in them when sequences ended.
  uint64_t slots_at_end = 0;
  uint64_t tokens_at_end = 0;
};

}  // namespace quire::runtime

#endif  // QUIRE_WORKER_RUNTIME_SCHEDULER_OPTIONS_H_
