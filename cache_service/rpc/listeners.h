// Where a gRPC server listens.
#ifndef QUIRE_CACHE_SERVICE_RPC_LISTENERS_H_
#define QUIRE_CACHE_SERVICE_RPC_LISTENERS_H_

#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace quire {

// Without files: no TLS. Errors: INVALID_ARGUMENT for tls_certificate or tls_key.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> TcpCredentials(
    const std::string& certificate_file, const std::string& key_file);

// Errors: INVALID_ARGUMENT for tcp_address unless it is HOST:PORT.
absl::Status CheckTcpAddress(const std::string& address);

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_RPC_LISTENERS_H_
