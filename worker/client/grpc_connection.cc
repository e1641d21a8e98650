#include <grpcpp/grpcpp.h>

#include <thread>
#include <utility>

#include "quire/v1/cache_service.grpc.pb.h"
#include "worker/client/connection.h"
#include "worker/client/status_convert.h"

namespace quire::client {
namespace {

// Answers are bounded by the server; this only has to be above its bound.
constexpr int kMaxReceiveBytes = 64 << 20;

void Authorize(grpc::ClientContext& context, const std::string& token) {
  if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
}

class GrpcStepChannel final : public StepChannel {
 public:
  GrpcStepChannel(v1::CacheService::Stub& stub, const std::string& token) {
    Authorize(context_, token);
    stream_ = stub.StreamSteps(&context_);
  }

  bool Send(const v1::StepBatch& step) override {
    v1::StreamStepsRequest request;
    *request.mutable_step() = step;
    return stream_->Write(request);
  }

  bool Receive(v1::StreamStepsResponse& response) override { return stream_->Read(&response); }

  void Cancel() override { context_.TryCancel(); }

  absl::Status status() override { return FromGrpc(stream_->Finish()); }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::StreamStepsRequest, v1::StreamStepsResponse>>
      stream_;
};

class GrpcConnection final : public Connection {
 public:
  GrpcConnection(std::shared_ptr<grpc::Channel> channel, std::string token)
      : channel_(std::move(channel)),
        stub_(v1::CacheService::NewStub(channel_)),
        token_(std::move(token)) {}

  absl::StatusOr<v1::AttachWorkerResponse> Attach(const v1::AttachWorkerRequest& request,
                                                  Timeout timeout) override {
    return Call<v1::AttachWorkerResponse>(&v1::CacheService::Stub::AttachWorker, request, timeout);
  }

  absl::StatusOr<v1::RenewLeaseResponse> Renew(const v1::RenewLeaseRequest& request,
                                               Timeout timeout) override {
    return Call<v1::RenewLeaseResponse>(&v1::CacheService::Stub::RenewLease, request, timeout);
  }

  absl::Status Detach(const v1::DetachWorkerRequest& request, Timeout timeout) override {
    return Call<v1::DetachWorkerResponse>(&v1::CacheService::Stub::DetachWorker, request, timeout)
        .status();
  }

  absl::StatusOr<v1::StepResponse> Step(const v1::StepRequest& request, Timeout timeout) override {
    return Call<v1::StepResponse>(&v1::CacheService::Stub::Step, request, timeout);
  }

  absl::StatusOr<v1::GetBlockTableResponse> GetBlockTable(const v1::GetBlockTableRequest& request,
                                                          Timeout timeout) override {
    return Call<v1::GetBlockTableResponse>(&v1::CacheService::Stub::GetBlockTable, request,
                                           timeout);
  }

  absl::StatusOr<v1::PeekPrefixResponse> PeekPrefix(const v1::PeekPrefixRequest& request,
                                                    Timeout timeout) override {
    return Call<v1::PeekPrefixResponse>(&v1::CacheService::Stub::PeekPrefix, request, timeout);
  }

  std::unique_ptr<StepChannel> OpenSteps() override {
    return std::make_unique<GrpcStepChannel>(*stub_, token_);
  }

  // A channel is only driven forward by threads that wait on it: if this one slept, the connection
  // would time out half made.
  void WaitForServer(Timeout pause) override {
    const auto until = std::chrono::system_clock::now() +
                       std::chrono::duration_cast<std::chrono::microseconds>(pause);
    if (channel_->GetState(/*try_to_connect=*/true) != GRPC_CHANNEL_READY) {
      channel_->WaitForConnected(until);
    } else {
      std::this_thread::sleep_until(until);
    }
  }

 private:
  template <typename Response, typename Method, typename Request>
  absl::StatusOr<Response> Call(Method method, const Request& request, Timeout timeout) {
    grpc::ClientContext context;
    Authorize(context, token_);
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::duration_cast<std::chrono::microseconds>(timeout));
    Response response;
    const grpc::Status status = ((*stub_).*method)(&context, request, &response);
    if (!status.ok()) return FromGrpc(status);
    return response;
  }

  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::CacheService::Stub> stub_;
  const std::string token_;
};

}  // namespace

std::shared_ptr<Connection> ConnectGrpc(const std::string& server, const std::string& token) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxReceiveBytes);
  // Workers reconnect quickly to a restarted server.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  // In truth the time that one attempt may take.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 2000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  // Workers of one process keep connections of their own.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return std::make_shared<GrpcConnection>(
      grpc::CreateCustomChannel(server, grpc::InsecureChannelCredentials(), arguments), token);
}

}  // namespace quire::client
