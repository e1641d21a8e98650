// Errors with a machine-readable reason and the numbers that explain them.
//
//   return MakeError(Reason::kLengthMismatch, "sequence 7 has length 12, not 11",
//                    {{"length", 12}, {"given", 11}});
//
// An Error travels either inside an operation's result or, via ToStatus, as the status of a whole
// call; FromStatus recovers it. The reason decides what a client does; the status code follows
// from the reason (CodeOf).
#ifndef QUIRE_CACHE_SERVICE_BASE_ERROR_H_
#define QUIRE_CACHE_SERVICE_BASE_ERROR_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace quire {

// Numbers equal quire.v1.ErrorReason.
enum class Reason : uint8_t {
  kNone = 0,
  kInvalidArgument = 1,
  kSequenceExists = 2,
  kLengthMismatch = 3,
  kNotComputed = 4,
  kSequenceNotFound = 5,
  kPinNotFound = 6,
  kPoolNotFound = 7,
  kWorkerNotFound = 8,
  kLeaseExpired = 9,
  kEpochMismatch = 10,
  kLayoutMismatch = 11,
  kStaleIncarnation = 12,
  kWindowLost = 13,
  kStepOutOfOrder = 14,
  kPoolExhausted = 15,
  kQuotaExceeded = 16,
  kLimitExceeded = 17,
  kDraining = 18,
  kContentMismatch = 19,
  kUnauthenticated = 20,
  kPermissionDenied = 21,
  kInvariantBroken = 22,
};

// UPPER_SNAKE name as it appears in google.rpc.ErrorInfo, e.g. "LENGTH_MISMATCH".
std::string_view ReasonName(Reason reason);
absl::StatusCode CodeOf(Reason reason);

// Key and value of one number (or name) of a message, for ErrorInfo metadata.
struct ErrorDetail {
  std::string name;
  std::string value;

  ErrorDetail(std::string_view detail_name, std::string_view detail_value)
      : name(detail_name), value(detail_value) {}

  ErrorDetail(std::string_view detail_name, const char* detail_value)
      : name(detail_name), value(detail_value) {}

  template <typename Integer>

  requires std::is_integral_v<Integer> ErrorDetail(std::string_view detail_name, Integer number)
      : name(detail_name), value(std::to_string(number)) {}

  friend bool operator==(const ErrorDetail&, const ErrorDetail&) = default;
};

struct Error {
  Reason reason = Reason::kNone;
  std::string message;
  std::vector<ErrorDetail> details;

  bool ok() const { return reason == Reason::kNone; }

  // Value of the named detail, or "" if absent.
  std::string_view Detail(std::string_view name) const;

  friend bool operator==(const Error&, const Error&) = default;
};

Error MakeError(Reason reason, std::string message, std::vector<ErrorDetail> details = {});
// INVALID_ARGUMENT for `field`; the message reads "<field>: <problem>".
Error InvalidArgument(std::string_view field, std::string_view problem,
                      std::vector<ErrorDetail> details = {});

// LIMIT_EXCEEDED: `given` of `field` would be above `limit`; the message reads "<field>:
// <problem>".
Error LimitExceeded(std::string_view field, std::string_view problem, uint64_t given,
                    uint64_t limit);

absl::Status ToStatus(const Error& error);
// The Error inside a status made by ToStatus; otherwise kInvariantBroken with the status's text.
// An OK status gives an Error that is ok().
Error FromStatus(const absl::Status& status);
Reason ReasonOf(const absl::Status& status);

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_BASE_ERROR_H_
