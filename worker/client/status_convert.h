// From gRPC's status to absl's, with the server's reason. Internal to worker/client.
#ifndef QUIRE_WORKER_CLIENT_STATUS_CONVERT_H_
#define QUIRE_WORKER_CLIENT_STATUS_CONVERT_H_

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace quire::client {

// Reads the ErrorInfo of domain "quire" from the status details; quire::FromStatus then gives
// reason and numbers. A status without one keeps its code and text, and HasReason says no.
absl::Status FromGrpc(const grpc::Status& status);

}  // namespace quire::client

#endif  // QUIRE_WORKER_CLIENT_STATUS_CONVERT_H_
