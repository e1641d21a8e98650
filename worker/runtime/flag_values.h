// Values of options: what they may be, and the refusal that names the option.
#ifndef QUIRE_WORKER_RUNTIME_FLAG_VALUES_H_
#define QUIRE_WORKER_RUNTIME_FLAG_VALUES_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cache_service/base/clock.h"

namespace quire::runtime {

// "--flag: problem".
absl::Status BadFlag(std::string_view flag, std::string_view problem);
absl::Status Unknown(std::string_view flag, const std::string& value, const char* known);
// From `least` to `most`.
absl::Status CheckRange(std::string_view flag, uint64_t value, uint64_t least, uint64_t most);
// From 0 to 10^9 seconds.
absl::StatusOr<Duration> ToDuration(std::string_view flag, double seconds);

}  // namespace quire::runtime

#endif  // QUIRE_WORKER_RUNTIME_FLAG_VALUES_H_
