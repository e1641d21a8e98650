#include "tests/support/operator_calls.h"

#include <grpcpp/grpcpp.h>

#include <chrono>

namespace quire {
namespace {

std::shared_ptr<grpc::Channel> Connect(const std::string& address) {
  // A new connection at once where a server has just been restarted.
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 200);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

OperatorCalls::OperatorCalls(const std::string& address)
    : stub_(v1::AdminService::NewStub(Connect(address))) {}

template <typename Method, typename Request, typename Response>
absl::Status OperatorCalls::Call(Method method, const Request& request, Response* response) {
  grpc::Status status;
  // The channel learns from a call that its server was killed.
  for (int tries = 0; tries < 3; ++tries) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    context.set_wait_for_ready(true);
    status = ((*stub_).*method)(&context, request, response);
    if (status.error_code() != grpc::StatusCode::UNAVAILABLE) break;
  }
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

absl::StatusOr<v1::Pool> OperatorCalls::Pool() {
  v1::GetPoolResponse response;
  absl::Status status = Call(&v1::AdminService::Stub::GetPool, v1::GetPoolRequest(), &response);
  if (!status.ok()) return status;
  return response.pool();
}

absl::StatusOr<std::string> OperatorCalls::Audit() {
  v1::AuditPoolRequest request;
  request.set_content(true);
  v1::AuditPoolResponse response;
  absl::Status status = Call(&v1::AdminService::Stub::AuditPool, request, &response);
  if (!status.ok()) return status;
  std::string findings;
  for (const v1::AuditFinding& finding : response.findings()) {
    findings += finding.ShortDebugString() + "\n";
  }
  return findings;
}

absl::Status OperatorCalls::Flush() {
  v1::FlushPoolResponse response;
  return Call(&v1::AdminService::Stub::FlushPool, v1::FlushPoolRequest(), &response);
}

absl::StatusOr<v1::ListWorkersResponse> OperatorCalls::Workers() {
  v1::ListWorkersResponse response;
  absl::Status status =
      Call(&v1::AdminService::Stub::ListWorkers, v1::ListWorkersRequest(), &response);
  if (!status.ok()) return status;
  return response;
}

}  // namespace quire
