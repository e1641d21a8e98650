#include "worker/runtime/summary.h"

#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace quire::runtime {
namespace {

double Ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

double HitRate(const SchedulerStats& stats) {
  return Ratio(static_cast<double>(stats.reused_tokens), static_cast<double>(stats.prompt_tokens));
}

nlohmann::ordered_json BlockedJson(const Summary& summary) {
  const BlockedTime& blocked = summary.stats.blocked;
  return {{"sending", summary.us_per_token(blocked.sending)},
          {"decoding", summary.us_per_token(blocked.decoding)},
          {"beginning", summary.us_per_token(blocked.beginning)},
          {"other", summary.us_per_token(blocked.other)}};
}

}  // namespace

double Summary::hit_rate() const { return HitRate(stats); }

double Summary::internal_waste() const {
  return Ratio(static_cast<double>(stats.slots_at_end - stats.tokens_at_end),
               static_cast<double>(stats.slots_at_end));
}

double Summary::tokens_per_second() const {
  return Ratio(static_cast<double>(stats.generated_tokens), seconds);
}

double Summary::us_per_token(Duration time) const {
  return Ratio(std::chrono::duration<double, std::micro>(time).count(),
               static_cast<double>(stats.generated_tokens));
}

bool Summary::good() const {
  return error.empty() && stats.failed_requests == 0 &&
         (!verification.has_value() || verification->identical());
}

std::string ToText(const Summary& summary) {
  const SchedulerStats& stats = summary.stats;
  std::string text = absl::StrFormat(
      "workload:         %s, %.1f s\n"
      "requests:         %d finished, %d failed\n"
      "tokens:           %d generated, %.1f per second\n"
      "prefix hit rate:  %.1f %% (%d of %d prompt tokens reused, %d of them copied)\n"
      "internal waste:   %.2f %% of slots when sequences ended\n"
      "copies:           %d blocks, %d forks\n"
      "evictions:        %d blocks\n"
      "preemptions:      %d, after %d refused operations\n"
      "steps:            %d for %d launches, %d launches waited for slots\n"
      "blocked:          %.1f us per generated token on the server: %.1f sending, %.1f decoding, "
      "%.1f "
      "beginning, %.1f other\n",
      summary.workload, summary.seconds, stats.requests, stats.failed_requests,
      stats.generated_tokens, summary.tokens_per_second(), 100 * summary.hit_rate(),
      stats.reused_tokens, stats.prompt_tokens, stats.copied_tokens, 100 * summary.internal_waste(),
      stats.copy_orders, stats.forks, stats.evicted_blocks, stats.preemptions, stats.shortages,
      stats.steps, stats.launches, stats.launch_waits, summary.us_per_token(stats.blocked.total()),
      summary.us_per_token(stats.blocked.sending), summary.us_per_token(stats.blocked.decoding),
      summary.us_per_token(stats.blocked.beginning), summary.us_per_token(stats.blocked.other));
  if (stats.unknown_rows > 0) {
    absl::StrAppendFormat(&text, "lag:              %d tokens computed before they were known\n",
                          stats.unknown_rows);
  }
  if (stats.drafted_tokens > 0) {
    absl::StrAppendFormat(&text, "drafts:           %d of %d accepted\n", stats.accepted_drafts,
                          stats.drafted_tokens);
  }
  if (stats.lost_leases > 0) {
    absl::StrAppendFormat(&text, "lost leases:      %d\n", stats.lost_leases);
  }
  if (!summary.error.empty()) {
    absl::StrAppendFormat(&text, "ended early:      %d requests unfinished (%s)\n",
                          summary.unfinished, summary.error);
  }
  if (summary.verification.has_value()) {
    absl::StrAppend(&text, summary.verification->Summary(), "\n");
  }
  return text;
}

std::string ToJson(const Summary& summary) {
  const SchedulerStats& stats = summary.stats;
  nlohmann::ordered_json json = {
      {"workload", summary.workload},
      {"seconds", summary.seconds},
      {"requests", stats.requests},
      {"failed_requests", stats.failed_requests},
      {"generated_tokens", stats.generated_tokens},
      {"tokens_per_second", summary.tokens_per_second()},
      {"prompt_tokens", stats.prompt_tokens},
      {"reused_tokens", stats.reused_tokens},
      {"copied_tokens", stats.copied_tokens},
      {"computed_tokens", stats.computed_tokens},
      {"prefix_hit_rate", summary.hit_rate()},
      {"internal_waste", summary.internal_waste()},
      {"copies", stats.copy_orders},
      {"forks", stats.forks},
      {"evictions", stats.evicted_blocks},
      {"preemptions", stats.preemptions},
      {"shortages", stats.shortages},
      {"steps", stats.steps},
      {"launches", stats.launches},
      {"launch_waits", stats.launch_waits},
      {"unknown_rows", stats.unknown_rows},
      {"drafted_tokens", stats.drafted_tokens},
      {"accepted_drafts", stats.accepted_drafts},
      {"lost_leases", stats.lost_leases},
      {"blocked_us_per_token", summary.us_per_token(stats.blocked.total())},
      {"blocked_us_per_token_by_place", BlockedJson(summary)}};
  if (!summary.error.empty()) {
    json["error"] = summary.error;
    json["unfinished_requests"] = summary.unfinished;
  }
  if (summary.verification.has_value()) {
    const VerifyReport& report = *summary.verification;
    json["verification"] = report.identical() ? "identical" : "different";
    json["verified_tokens"] = report.tokens;
    json["different_tokens"] = report.different_tokens;
    json["different_logits"] = report.different_logits;
    json["near_ties"] = report.near_ties;
    json["largest_logit_difference"] = report.largest_logit_difference;
    json["verification_seconds"] = summary.verification_seconds;
  }
  return json.dump(2) + "\n";
}

std::string ProgressLine(const SchedulerStats& stats, double seconds, size_t unfinished,
                         uint32_t free_blocks, uint32_t evictable_blocks) {
  return absl::StrFormat(
      "%5.1f s  %5d requests (%d running)  %6.0f tokens/s  hit rate %5.1f %%  free %d  cached %d  "
      "evicted %d  preempted %d",
      seconds, stats.requests, unfinished,
      Ratio(static_cast<double>(stats.generated_tokens), seconds), 100 * HitRate(stats),
      free_blocks, evictable_blocks, stats.evicted_blocks, stats.preemptions);
}

absl::Status WriteFile(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file.fail()) return absl::OkStatus();
  return absl::ErrnoToStatus(errno == 0 ? EIO : errno, absl::StrCat("cannot write ", path));
}

}  // namespace quire::runtime
