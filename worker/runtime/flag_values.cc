#include "worker/runtime/flag_values.h"

#include "absl/strings/str_cat.h"

namespace quire::runtime {

absl::Status BadFlag(std::string_view flag, std::string_view problem) {
  return absl::InvalidArgumentError(
      absl::StrCat("--", std::string(flag), ": ", std::string(problem)));
}

absl::Status Unknown(std::string_view flag, const std::string& value, const char* known) {
  return absl::InvalidArgumentError(
      absl::StrCat("--", std::string(flag), "=", value, ": it must be one of ", known));
}

absl::Status CheckRange(std::string_view flag, uint64_t value, uint64_t least, uint64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return BadFlag(flag, absl::StrCat(value, " is not from ", least, " to ", most));
}

absl::StatusOr<Duration> ToDuration(std::string_view flag, double seconds) {
  constexpr double kMost = 1e9;
  if (seconds >= 0 && seconds <= kMost) {
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
  }
  return BadFlag(flag, absl::StrCat(seconds, " s is not from 0 to ", kMost, " s"));
}

}  // namespace quire::runtime
