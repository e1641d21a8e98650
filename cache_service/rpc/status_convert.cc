#include "cache_service/rpc/status_convert.h"

#include <string>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace quire {
namespace {

constexpr char kDomain[] = "quire";
// Trailers are small; a longer text is cut.
constexpr size_t kMaxMessageBytes = 1024;

grpc::StatusCode GrpcCode(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return grpc::StatusCode::OK;
    case absl::StatusCode::kCancelled:
      return grpc::StatusCode::CANCELLED;
    case absl::StatusCode::kInvalidArgument:
      return grpc::StatusCode::INVALID_ARGUMENT;
    case absl::StatusCode::kDeadlineExceeded:
      return grpc::StatusCode::DEADLINE_EXCEEDED;
    case absl::StatusCode::kNotFound:
      return grpc::StatusCode::NOT_FOUND;
    case absl::StatusCode::kAlreadyExists:
      return grpc::StatusCode::ALREADY_EXISTS;
    case absl::StatusCode::kPermissionDenied:
      return grpc::StatusCode::PERMISSION_DENIED;
    case absl::StatusCode::kResourceExhausted:
      return grpc::StatusCode::RESOURCE_EXHAUSTED;
    case absl::StatusCode::kFailedPrecondition:
      return grpc::StatusCode::FAILED_PRECONDITION;
    case absl::StatusCode::kAborted:
      return grpc::StatusCode::ABORTED;
    case absl::StatusCode::kOutOfRange:
      return grpc::StatusCode::OUT_OF_RANGE;
    case absl::StatusCode::kUnimplemented:
      return grpc::StatusCode::UNIMPLEMENTED;
    case absl::StatusCode::kInternal:
      return grpc::StatusCode::INTERNAL;
    case absl::StatusCode::kUnavailable:
      return grpc::StatusCode::UNAVAILABLE;
    case absl::StatusCode::kDataLoss:
      return grpc::StatusCode::DATA_LOSS;
    case absl::StatusCode::kUnauthenticated:
      return grpc::StatusCode::UNAUTHENTICATED;
    default:
      return grpc::StatusCode::UNKNOWN;
  }
}

bool IsTransportCode(absl::StatusCode code) {
  return code == absl::StatusCode::kCancelled || code == absl::StatusCode::kDeadlineExceeded ||
         code == absl::StatusCode::kUnimplemented;
}

std::string Details(grpc::StatusCode code, const Error& error, const std::string& message) {
  google::rpc::ErrorInfo info;
  info.set_reason(std::string(ReasonName(error.reason)));
  info.set_domain(kDomain);
  for (const ErrorDetail& detail : error.details) {
    (*info.mutable_metadata())[detail.name] = detail.value.substr(0, kMaxMessageBytes);
  }
  google::rpc::Status status;
  status.set_code(static_cast<int>(code));
  status.set_message(message);
  status.add_details()->PackFrom(info);
  return status.SerializeAsString();
}

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  if (IsTransportCode(status.code())) {
    return grpc::Status(GrpcCode(status.code()), std::string(status.message()));
  }
  const Error error = FromStatus(status);
  const grpc::StatusCode code = GrpcCode(CodeOf(error.reason));
  const std::string message = error.message.substr(0, kMaxMessageBytes);
  return grpc::Status(code, message, Details(code, error, message));
}

void FillOperationError(const Error& error, v1::OperationError* out) {
  out->set_reason(static_cast<v1::ErrorReason>(error.reason));
  out->set_message(error.message);
  for (const ErrorDetail& detail : error.details) {
    v1::ErrorNumber* number = out->add_numbers();
    number->set_name(detail.name);
    number->set_value(detail.value);
  }
}

}  // namespace quire
