// What a run did, for people and for scripts.
#ifndef QUIRE_WORKER_RUNTIME_SUMMARY_H_
#define QUIRE_WORKER_RUNTIME_SUMMARY_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "worker/runtime/scheduler_options.h"
#include "worker/runtime/verifier.h"

namespace quire::runtime {

struct Summary {
  std::string workload;
  double seconds = 0;
  SchedulerStats stats;
  // Of a run that ended early.
  size_t unfinished = 0;
  // Why it did; empty if it did not.
  std::string error;
  std::optional<VerifyReport> verification;
  double verification_seconds = 0;

  double hit_rate() const;
  double internal_waste() const;
  double tokens_per_second() const;
  // Of one of the times in stats.blocked, or their sum, for a generated token.
  double us_per_token(Duration time) const;
  // Nothing failed, nothing is missing, and the text is that of an unshared run.
  bool good() const;
};

// Several lines, ending with the verification if there was one.
std::string ToText(const Summary& summary);
// One object; ratios are numbers between 0 and 1.
std::string ToJson(const Summary& summary);

// One line for the terminal, without line end.
std::string ProgressLine(const SchedulerStats& stats, double seconds, size_t unfinished,
                         uint32_t free_blocks, uint32_t evictable_blocks);

absl::Status WriteFile(const std::string& path, const std::string& text);

}  // namespace quire::runtime

#endif  // QUIRE_WORKER_RUNTIME_SUMMARY_H_
