#include "worker/client/status_convert.h"

#include <map>
#include <string>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "quire/v1/error_reason.pb.h"
#include "worker/client/types.h"

namespace quire::client {
namespace {

Reason ReasonByName(const std::string& name) {
  v1::ErrorReason reason = v1::ERROR_REASON_UNSPECIFIED;
  if (!v1::ErrorReason_Parse("ERROR_REASON_" + name, &reason)) return Reason::kNone;
  return static_cast<Reason>(reason);
}

absl::Status FromErrorInfo(const google::rpc::ErrorInfo& info, const std::string& message) {
  const Reason reason = ReasonByName(info.reason());
  if (reason == Reason::kNone) return absl::OkStatus();
  Error error = MakeError(reason, message);
  const std::map<std::string, std::string> ordered(info.metadata().begin(), info.metadata().end());
  for (const auto& [name, value] : ordered) {
    error.details.emplace_back(std::string_view(name), std::string_view(value));
  }
  return ToStatus(error);
}

}  // namespace

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  google::rpc::Status details;
  if (details.ParseFromString(status.error_details())) {
    for (const auto& detail : details.details()) {
      google::rpc::ErrorInfo info;
      if (!detail.UnpackTo(&info) || info.domain() != "quire") continue;
      absl::Status typed = FromErrorInfo(info, status.error_message());
      if (!typed.ok()) return typed;
    }
  }
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

bool HasReason(const absl::Status& status) {
  bool any = false;
  status.ForEachPayload([&any](const auto&, const absl::Cord&) { any = true; });
  return any;
}

bool EndsLease(const absl::Status& status) {
  if (!HasReason(status)) return false;
  const Reason reason = ReasonOf(status);
  return reason == Reason::kLeaseExpired || reason == Reason::kEpochMismatch ||
         reason == Reason::kStaleIncarnation;
}

}  // namespace quire::client
