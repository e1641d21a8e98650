#include "tests/bench/echo_server.h"

#include <grpcpp/grpcpp.h>

#include <csignal>
#include <cstdio>

#include "echo.grpc.pb.h"

namespace quire::bench {
namespace {

void Answer(const EchoRequest& request, EchoResponse* response) {
  response->mutable_payload()->resize(request.answer_bytes());
}

class EchoStream final : public grpc::ServerBidiReactor<EchoRequest, EchoResponse> {
 public:
  EchoStream() { StartRead(&request_); }

 private:
  void OnReadDone(bool ok) override {
    if (!ok) {
      Finish(grpc::Status::OK);
      return;
    }
    Answer(request_, &response_);
    StartWrite(&response_);
  }

  void OnWriteDone(bool ok) override {
    if (ok) StartRead(&request_);
    if (!ok) Finish(grpc::Status::CANCELLED);
  }

  void OnDone() override { delete this; }

  EchoRequest request_;
  EchoResponse response_;
};

class EchoServiceImpl final : public EchoService::CallbackService {
  grpc::ServerUnaryReactor* Echo(grpc::CallbackServerContext* context, const EchoRequest* request,
                                 EchoResponse* response) override {
    Answer(*request, response);
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  grpc::ServerBidiReactor<EchoRequest, EchoResponse>* StreamEcho(
      grpc::CallbackServerContext* /*context*/) override {
    return new EchoStream();
  }
};

}  // namespace

int RunEchoServer(const std::string& unix_socket) {
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  EchoServiceImpl service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.SetMaxReceiveMessageSize(16 << 20);
  builder.RegisterService(&service);
  builder.AddListeningPort("unix:" + unix_socket, grpc::InsecureServerCredentials());
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  std::printf("ready: tcp_port=%d\n", port);
  std::fflush(stdout);
  int signal = 0;
  sigwait(&ends, &signal);
  server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
  return 0;
}

}  // namespace quire::bench
