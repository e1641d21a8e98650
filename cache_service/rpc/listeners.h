// Where a gRPC server listens.
#ifndef QUIRE_CACHE_SERVICE_RPC_LISTENERS_H_
#define QUIRE_CACHE_SERVICE_RPC_LISTENERS_H_

#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace quire {

// Without files: no TLS. Errors: INVALID_ARGUMENT for tls_certificate or tls_key: not readable, not
// PEM, a key with a password, or not the key of the certificate.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> TcpCredentials(
    const std::string& certificate_file, const std::string& key_file);

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_RPC_LISTENERS_H_
