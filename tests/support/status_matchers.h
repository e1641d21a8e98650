// Matchers for absl::Status and StatusOr that carry a Reason.
#ifndef QUIRE_TESTS_SUPPORT_STATUS_MATCHERS_H_
#define QUIRE_TESTS_SUPPORT_STATUS_MATCHERS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cache_service/base/error.h"
#include "gmock/gmock.h"

namespace quire::testing {

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }

template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

MATCHER(IsOk, "is OK") {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).ok();
}

MATCHER_P(HasReason, reason, "has reason " + std::string(ReasonName(reason))) {
  *result_listener << StatusOf(arg).ToString();
  return !StatusOf(arg).ok() && ReasonOf(StatusOf(arg)) == reason;
}

// INVALID_ARGUMENT for a field.
MATCHER_P(IsInvalid, field, "is INVALID_ARGUMENT for " + std::string(field)) {
  const Error error = FromStatus(StatusOf(arg));
  *result_listener << StatusOf(arg).ToString();
  return error.reason == Reason::kInvalidArgument && error.Detail("field") == field;
}

}  // namespace quire::testing

#endif  // QUIRE_TESTS_SUPPORT_STATUS_MATCHERS_H_
