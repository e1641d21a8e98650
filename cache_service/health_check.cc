#include "cache_service/health_check.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <future>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace quire {
namespace {

// Debian ships no generated code for grpc.health.v1. The messages are small enough to write down:
// an empty request means the whole server; field 1 of the response is the status, 1 is SERVING.
constexpr std::string_view kServing("\x08\x01", 2);

std::string Bytes(const grpc::ByteBuffer& buffer) {
  grpc::Slice slice;
  if (!buffer.DumpToSingleSlice(&slice).ok()) return "";
  return {reinterpret_cast<const char*>(slice.begin()), slice.size()};
}

}  // namespace

absl::Status CheckHealth(const std::string& unix_socket, Duration timeout) {
  grpc::GenericStub stub(
      grpc::CreateChannel("unix:" + unix_socket, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + timeout);
  const grpc::Slice nothing;
  const grpc::ByteBuffer request(&nothing, 1);
  grpc::ByteBuffer response;
  std::promise<grpc::Status> done;
  stub.UnaryCall(&context, "/grpc.health.v1.Health/Check", grpc::StubOptions(), &request, &response,
                 [&done](grpc::Status status) { done.set_value(std::move(status)); });
  const grpc::Status status = done.get_future().get();
  if (!status.ok()) {
    return absl::UnavailableError(absl::StrCat(unix_socket, ": ", status.error_message()));
  }
  if (Bytes(response) != kServing) {
    return absl::UnavailableError(absl::StrCat(unix_socket, ": the server does not serve"));
  }
  return absl::OkStatus();
}

}  // namespace quire
