#include "cache_service/base/error.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "absl/strings/cord.h"

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

// The reason and details ride on the status as one payload of fields "<length>:<bytes>".
constexpr char kPayloadUrl[] = "quire/error";

void AppendField(std::string_view field, std::string& payload) {
  payload.append(std::to_string(field.size())).append(":").append(field);
}

// Removes the first field from `payload`; nothing if it is damaged.
std::optional<std::string_view> TakeField(std::string_view& payload) {
  size_t length = 0;
  const char* const end = payload.data() + payload.size();
  const auto [after, problem] = std::from_chars(payload.data(), end, length);
  if (problem != std::errc() || after == end || *after != ':') return std::nullopt;
  payload.remove_prefix(static_cast<size_t>(after - payload.data()) + 1);
  if (length > payload.size()) return std::nullopt;
  const std::string_view field = payload.substr(0, length);
  payload.remove_prefix(length);
  return field;
}

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

Error LimitExceeded(std::string_view field, std::string_view problem, uint64_t given,
                    uint64_t limit) {
  Error error = InvalidArgument(field, problem, {{"given", given}, {"limit", limit}});
  error.reason = Reason::kLimitExceeded;
  return error;
}

absl::Status ToStatus(const Error& error) {
  if (error.ok()) return absl::OkStatus();
  absl::Status status(CodeOf(error.reason), error.message);
  std::string payload;
  AppendField(ReasonName(error.reason), payload);
  for (const ErrorDetail& detail : error.details) {
    AppendField(detail.name, payload);
    AppendField(detail.value, payload);
  }
  status.SetPayload(kPayloadUrl, absl::Cord(payload));
  return status;
}

Error FromStatus(const absl::Status& status) {
  if (status.ok()) return {};
  const std::string text(status.GetPayload(kPayloadUrl).value_or(absl::Cord()));
  std::string_view rest = text;
  const std::string_view name = TakeField(rest).value_or("");
  const auto* const known =
      std::find_if(kReasons.begin() + 1, kReasons.end(),
                   [name](const ReasonInfo& info) { return info.name == name; });
  Error error = MakeError(Reason::kInvariantBroken, std::string(status.message()));
  if (known == kReasons.end()) return error;
  error.reason = static_cast<Reason>(known - kReasons.begin());
  while (!rest.empty()) {
    const auto key = TakeField(rest);
    const auto value = TakeField(rest);
    if (!key.has_value() || !value.has_value()) break;
    error.details.emplace_back(*key, *value);
  }
  return error;
}

Reason ReasonOf(const absl::Status& status) { return FromStatus(status).reason; }

}  // namespace quire
