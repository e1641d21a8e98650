// What a client reads from a refused call.
#ifndef QUIRE_TESTS_SUPPORT_GRPC_ERRORS_H_
#define QUIRE_TESTS_SUPPORT_GRPC_ERRORS_H_

#include <grpcpp/support/status.h>

#include <string>

#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace quire::testing {

// The one ErrorInfo of the status; empty if there is none, or more than one.
inline google::rpc::ErrorInfo ErrorInfoOf(const grpc::Status& status) {
  google::rpc::Status details;
  google::rpc::ErrorInfo info;
  if (!details.ParseFromString(status.error_details()) || details.details_size() != 1) return info;
  details.details(0).UnpackTo(&info);
  return info;
}

inline std::string ReasonIn(const grpc::Status& status) { return ErrorInfoOf(status).reason(); }

inline std::string NumberIn(const grpc::Status& status, const std::string& name) {
  const auto info = ErrorInfoOf(status);
  const auto it = info.metadata().find(name);
  return it == info.metadata().end() ? "" : it->second;
}

MATCHER(CallIsOk, "is OK") {
  *result_listener << arg.error_code() << " " << arg.error_message();
  return arg.ok();
}

// The code, and the reason of the one ErrorInfo of domain "quire".
MATCHER_P2(IsRefused, code, reason, std::string("is refused with ") + reason) {
  *result_listener << "code " << arg.error_code() << ", reason " << ReasonIn(arg) << ", "
                   << arg.error_message();
  return arg.error_code() == code && ReasonIn(arg) == reason &&
         ErrorInfoOf(arg).domain() == "quire";
}

}  // namespace quire::testing

#endif  // QUIRE_TESTS_SUPPORT_GRPC_ERRORS_H_
