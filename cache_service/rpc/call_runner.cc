#include "cache_service/rpc/call_runner.h"

#include <sys/resource.h>

#include <chrono>
#include <new>
#include <utility>
#include <vector>

#include "cache_service/base/error.h"
#include "cache_service/base/memory_reserve.h"
#include "cache_service/rpc/status_convert.h"

namespace quire {
namespace {

absl::Status OutOfMemory() {
  std::vector<ErrorDetail> details = {{"field", "server_memory"}};
  rlimit limit = {};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    details.emplace_back("limit", uint64_t{limit.rlim_cur});
  }
  return ToStatus(MakeError(Reason::kLimitExceeded, "server_memory: none is left for this call",
                            std::move(details)));
}

}  // namespace

absl::Status CallRunner::WithinMemory(absl::FunctionRef<absl::Status()> body) {
  try {
    if (HasMemoryReserve()) return body();
  } catch (const std::bad_alloc&) {
  }
  return OutOfMemory();
}

absl::Status CallRunner::StillWanted(const grpc::CallbackServerContext& context) {
  if (context.deadline() <= std::chrono::system_clock::now()) {
    return absl::DeadlineExceededError("the deadline passed before the call was begun");
  }
  if (context.IsCancelled()) return absl::CancelledError("the caller gave up");
  return absl::OkStatus();
}

absl::StatusOr<Caller> CallRunner::Admit(const grpc::CallbackServerContext& context,
                                         RpcMethod method) const {
  absl::StatusOr<Caller> caller = authenticator_.Authenticate(context.client_metadata());
  if (caller.ok() && NeedsAdmin(method) && !caller->is_admin) {
    return ToStatus(MakeError(Reason::kPermissionDenied, "AdminService needs the role admin"));
  }
  return caller;
}

void CallRunner::Record(RpcMethod method, const grpc::Status& status, TimePoint start) {
  stats_.Record(static_cast<size_t>(method), static_cast<int>(status.error_code()),
                clock_.Now() - start);
}

absl::Status CallRunner::RunBody(grpc::CallbackServerContext* context, RpcMethod method,
                                 Body body) {
  return WithinMemory([&] {
    const absl::StatusOr<Caller> caller = Admit(*context, method);
    if (!caller.ok()) return caller.status();
    const absl::Status wanted = StillWanted(*context);
    return wanted.ok() ? body(*caller) : wanted;
  });
}

grpc::ServerUnaryReactor* CallRunner::Run(grpc::CallbackServerContext* context, RpcMethod method,
                                          Body body) {
  const TimePoint start = clock_.Now();
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const grpc::Status status = ToGrpcStatus(RunBody(context, method, body));
  Record(method, status, start);
  reactor->Finish(status);
  return reactor;
}

grpc::ServerUnaryReactor* CallRunner::RunSlow(grpc::CallbackServerContext* context,
                                              RpcMethod method, StoredBody body) {
  const TimePoint start = clock_.Now();
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  lane_.Post([this, context, method, body = std::move(body), reactor, start] {
    const grpc::Status status = ToGrpcStatus(RunBody(context, method, body));
    Record(method, status, start);
    reactor->Finish(status);
  });
  return reactor;
}

}  // namespace quire
