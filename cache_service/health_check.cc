#include "cache_service/health_check.h"

#include <grpcpp/grpcpp.h>

#include <chrono>

#include "absl/strings/str_cat.h"
#include "grpc/health/v1/health.grpc.pb.h"

namespace quire {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

absl::Status CheckHealth(const std::string& unix_socket, Duration timeout) {
  const auto stub = Health::NewStub(
      grpc::CreateChannel("unix:" + unix_socket, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + timeout);
  HealthCheckResponse response;
  const grpc::Status status = stub->Check(&context, HealthCheckRequest(), &response);
  if (!status.ok()) {
    return absl::UnavailableError(absl::StrCat(unix_socket, ": ", status.error_message()));
  }
  if (response.status() != HealthCheckResponse::SERVING) {
    return absl::UnavailableError(absl::StrCat(unix_socket, ": the server does not serve"));
  }
  return absl::OkStatus();
}

}  // namespace quire
