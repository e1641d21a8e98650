// Errors on the wire: the one place where a Reason becomes a gRPC status.
#ifndef QUIRE_CACHE_SERVICE_RPC_STATUS_CONVERT_H_
#define QUIRE_CACHE_SERVICE_RPC_STATUS_CONVERT_H_

#include <grpcpp/support/status.h>

#include "absl/status/status.h"
#include "cache_service/base/error.h"
#include "quire/v1/types.pb.h"

namespace quire {

// A refused call: code, text, and one google.rpc.ErrorInfo of domain "quire" with the numbers. A
// status without a Reason (deadline, cancellation) keeps its code and carries no details.
grpc::Status ToGrpcStatus(const absl::Status& status);

// The same for a failed operation, inside an answer.
void FillOperationError(const Error& error, v1::OperationError* out);

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_RPC_STATUS_CONVERT_H_
