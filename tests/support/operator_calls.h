// What an operator asks a server about its only pool.
#ifndef QUIRE_TESTS_SUPPORT_OPERATOR_CALLS_H_
#define QUIRE_TESTS_SUPPORT_OPERATOR_CALLS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "quire/v1/admin_service.grpc.pb.h"

namespace quire {

// Errors are those of the transport or the server. Not thread-safe.
class OperatorCalls {
 public:
  explicit OperatorCalls(const std::string& address);

  absl::StatusOr<v1::Pool> Pool();
  // Structure and content. The findings, one a line; empty: clean.
  absl::StatusOr<std::string> Audit();
  absl::Status Flush();
  absl::StatusOr<v1::ListWorkersResponse> Workers();

 private:
  template <typename Method, typename Request, typename Response>
  absl::Status Call(Method method, const Request& request, Response* response);

  const std::unique_ptr<v1::AdminService::Stub> stub_;
};

}  // namespace quire

#endif  // QUIRE_TESTS_SUPPORT_OPERATOR_CALLS_H_
