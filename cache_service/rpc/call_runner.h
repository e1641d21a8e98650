// What every call has in common, once: identity, rights, deadline, timing, status.
#ifndef QUIRE_CACHE_SERVICE_RPC_CALL_RUNNER_H_
#define QUIRE_CACHE_SERVICE_RPC_CALL_RUNNER_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <functional>

#include "absl/functional/function_ref.h"
#include "cache_service/base/clock.h"
#include "cache_service/metrics/rpc_stats.h"
#include "cache_service/rpc/authenticator.h"
#include "cache_service/rpc/rpc_methods.h"
#include "cache_service/rpc/serial_lane.h"

namespace quire {

// Thread-safe.
class CallRunner {
 public:
  using Body = absl::FunctionRef<absl::Status(const Caller&)>;
  using StoredBody = std::function<absl::Status(const Caller&)>;

  CallRunner(const Authenticator& authenticator, const Clock& clock, RpcStats& stats,
             SerialLane& lane)
      : authenticator_(authenticator), clock_(clock), stats_(stats), lane_(lane) {}

  // Runs the body on this thread; it must not block. A call whose deadline has passed is refused
  // before the body, never after.
  grpc::ServerUnaryReactor* Run(grpc::CallbackServerContext* context, RpcMethod method, Body body);
  // Runs the body on the lane for slow work.
  grpc::ServerUnaryReactor* RunSlow(grpc::CallbackServerContext* context, RpcMethod method,
                                    StoredBody body);

  // LIMIT_EXCEEDED where memory runs out: nothing has changed, or for a step whose answer is kept
  // and can be asked for again.
  static absl::Status WithinMemory(absl::FunctionRef<absl::Status()> body);

  // For streams, which take these steps by themselves.
  absl::StatusOr<Caller> Admit(const grpc::CallbackServerContext& context, RpcMethod method) const;
  void Record(RpcMethod method, const grpc::Status& status, TimePoint start);

  const Clock& clock() const { return clock_; }

  // DEADLINE_EXCEEDED or CANCELLED if nobody waits for an answer any more.
  static absl::Status StillWanted(const grpc::CallbackServerContext& context);

 private:
  absl::Status RunBody(grpc::CallbackServerContext* context, RpcMethod method, Body body);

  const Authenticator& authenticator_;
  const Clock& clock_;
  RpcStats& stats_;
  SerialLane& lane_;
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_RPC_CALL_RUNNER_H_
