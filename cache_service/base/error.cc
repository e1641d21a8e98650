#include "cache_service/base/error.h"

#include <array>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace quire {
namespace {

using Code = absl::StatusCode;

struct ReasonInfo {
  std::string_view name;
  Code code;
};

constexpr std::array<ReasonInfo, 23> kReasons = {{
    {"NONE", Code::kOk},
    {"INVALID_ARGUMENT", Code::kInvalidArgument},
    {"SEQUENCE_EXISTS", Code::kAlreadyExists},
    {"LENGTH_MISMATCH", Code::kFailedPrecondition},
    {"NOT_COMPUTED", Code::kFailedPrecondition},
    {"SEQUENCE_NOT_FOUND", Code::kNotFound},
    {"PIN_NOT_FOUND", Code::kNotFound},
    {"POOL_NOT_FOUND", Code::kNotFound},
    {"WORKER_NOT_FOUND", Code::kNotFound},
    {"LEASE_EXPIRED", Code::kFailedPrecondition},
    {"EPOCH_MISMATCH", Code::kFailedPrecondition},
    {"LAYOUT_MISMATCH", Code::kFailedPrecondition},
    {"STALE_INCARNATION", Code::kFailedPrecondition},
    {"WINDOW_LOST", Code::kFailedPrecondition},
    {"STEP_OUT_OF_ORDER", Code::kAborted},
    {"POOL_EXHAUSTED", Code::kResourceExhausted},
    {"QUOTA_EXCEEDED", Code::kResourceExhausted},
    {"LIMIT_EXCEEDED", Code::kResourceExhausted},
    {"DRAINING", Code::kUnavailable},
    {"CONTENT_MISMATCH", Code::kDataLoss},
    {"UNAUTHENTICATED", Code::kUnauthenticated},
    {"PERMISSION_DENIED", Code::kPermissionDenied},
    {"INVARIANT_BROKEN", Code::kInternal},
}};

// The reason and details ride on the status as one payload of unit-separated fields.
constexpr char kPayloadUrl[] = "quire/error";
constexpr char kSeparator = '\x1f';

}  // namespace

std::string_view ReasonName(Reason reason) { return kReasons.at(static_cast<size_t>(reason)).name; }

absl::StatusCode CodeOf(Reason reason) { return kReasons.at(static_cast<size_t>(reason)).code; }

std::string_view Error::Detail(std::string_view name) const {
  for (const ErrorDetail& detail : details) {
    if (detail.name == name) return detail.value;
  }
  return "";
}

Error MakeError(Reason reason, std::string message, std::vector<ErrorDetail> details) {
  return Error{reason, std::move(message), std::move(details)};
}

Error InvalidArgument(std::string_view field, std::string_view problem,
                      std::vector<ErrorDetail> details) {
  details.insert(details.begin(), ErrorDetail("field", field));
  std::string message(field);
  message.append(": ").append(problem);
  return MakeError(Reason::kInvalidArgument, std::move(message), std::move(details));
}

absl::Status ToStatus(const Error& error) {
  if (error.ok()) return absl::OkStatus();
  absl::Status status(CodeOf(error.reason), error.message);
  std::string payload = absl::StrCat(static_cast<int>(error.reason));
  for (const ErrorDetail& detail : error.details) {
    payload.push_back(kSeparator);
    payload.append(detail.name);
    payload.push_back(kSeparator);
    payload.append(detail.value);
  }
  status.SetPayload(kPayloadUrl, absl::Cord(payload));
  return status;
}

Error FromStatus(const absl::Status& status) {
  if (status.ok()) return {};
  const auto payload = status.GetPayload(kPayloadUrl);
  const std::string text(payload.value_or(absl::Cord()));
  const std::vector<std::string> fields = absl::StrSplit(text, kSeparator);
  int number = 0;
  if (!absl::SimpleAtoi(fields[0], &number) || number <= 0 ||
      static_cast<size_t>(number) >= kReasons.size()) {
    return MakeError(Reason::kInvariantBroken, std::string(status.message()));
  }
  Error error = MakeError(static_cast<Reason>(number), std::string(status.message()));
  for (size_t i = 1; i + 1 < fields.size(); i += 2) {
    error.details.emplace_back(std::string_view(fields[i]), std::string_view(fields[i + 1]));
  }
  return error;
}

Reason ReasonOf(const absl::Status& status) { return FromStatus(status).reason; }

}  // namespace quire
