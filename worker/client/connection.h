// The calls a client makes, one virtual each, so that tests can stand in for the server. Internal
// to worker/client.
#ifndef QUIRE_WORKER_CLIENT_CONNECTION_H_
#define QUIRE_WORKER_CLIENT_CONNECTION_H_

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "quire/v1/cache_service.pb.h"

namespace quire::client {

// One bidirectional stream of steps. Send from one thread, Receive from another; Cancel from any.
class StepChannel {
 public:
  virtual ~StepChannel() = default;

  // False: the stream is broken.
  virtual bool Send(const v1::StepBatch& step) = 0;
  // Blocks. False: the stream is broken; status() then says why.
  virtual bool Receive(v1::StreamStepsResponse& response) = 0;
  // Makes both calls return false.
  virtual void Cancel() = 0;
  // To be called once, after Receive returned false.
  virtual absl::Status status() = 0;
};

// Thread-safe. Each call ends within `timeout`; errors carry the server's reason where there is
// one.
class Connection {
 public:
  using Timeout = std::chrono::nanoseconds;

  virtual ~Connection() = default;

  virtual absl::StatusOr<v1::AttachWorkerResponse> Attach(const v1::AttachWorkerRequest& request,
                                                          Timeout timeout) = 0;
  virtual absl::StatusOr<v1::RenewLeaseResponse> Renew(const v1::RenewLeaseRequest& request,
                                                       Timeout timeout) = 0;
  virtual absl::Status Detach(const v1::DetachWorkerRequest& request, Timeout timeout) = 0;
  virtual absl::StatusOr<v1::StepResponse> Step(const v1::StepRequest& request,
                                                Timeout timeout) = 0;
  virtual absl::StatusOr<v1::GetBlockTableResponse> GetBlockTable(
      const v1::GetBlockTableRequest& request, Timeout timeout) = 0;
  virtual absl::StatusOr<v1::PeekPrefixResponse> PeekPrefix(const v1::PeekPrefixRequest& request,
                                                            Timeout timeout) = 0;
  virtual std::unique_ptr<StepChannel> OpenSteps() = 0;
  // Between two tries: returns after `pause`, or as soon as a connection that was lost is back.
  virtual void WaitForServer(Timeout pause) = 0;
};

// A lazily connected channel to "unix:/path" or "host:port" without transport security. `token`, if
// not empty, is sent as a bearer token with every call.
std::shared_ptr<Connection> ConnectGrpc(const std::string& server, const std::string& token);

}  // namespace quire::client

#endif  // QUIRE_WORKER_CLIENT_CONNECTION_H_
