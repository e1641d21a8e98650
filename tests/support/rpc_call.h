// One unary call of a generated stub.
#ifndef QUIRE_TESTS_SUPPORT_RPC_CALL_H_
#define QUIRE_TESTS_SUPPORT_RPC_CALL_H_

#include <grpcpp/grpcpp.h>

#include <chrono>

#include "absl/status/status.h"
#include "tests/support/rpc_messages.h"

namespace quire::testing {

// Long enough for a loaded machine; a call that takes longer is a failure.
inline constexpr std::chrono::seconds kCallTimeout(30);

// Makes a unary call with a deadline; the error keeps its reason.
template <typename Stub, typename Request, typename Response>
absl::Status Call(Stub& stub,
                  grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                  const Request& request, Response* response) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kCallTimeout);
  return FromCall((stub.*method)(&context, request, response));
}

}  // namespace quire::testing

#endif  // QUIRE_TESTS_SUPPORT_RPC_CALL_H_
