// Clients of the socket workloads: a worker of Quire, and the same calls without content.
#ifndef QUIRE_TESTS_BENCH_WIRE_H_
#define QUIRE_TESTS_BENCH_WIRE_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <string>

#include "echo.grpc.pb.h"
#include "quire/v1/cache_service.grpc.pb.h"
#include "worker/client/attachment.h"

namespace quire::bench {

enum class Form { kUnary, kStream };

// A connection of its own, so that workers do not share one.
std::shared_ptr<grpc::Channel> Connect(const std::string& address);

// A worker that maps a pool of the smallest blocks.
client::ClientOptions BenchClientOptions(const std::string& address, const std::string& name);

// One worker, which reports every answered step as complete. A failure ends the program, for no
// workload may fail silently. Not thread-safe.
class WireWorker {
 public:
  WireWorker(const std::string& address, const std::string& name, Form form);

  // The next step, without operations; to be filled before Call.
  v1::StepBatch& Prepare();
  // Sends the step and waits for its answer.
  const v1::StepAnswer& Call();

  // Stream form only: the halves of Call, for several steps in flight.
  void Send();
  const v1::StepAnswer& Receive();

  // Bytes of the last step and the last answer.
  size_t sent_bytes() const;
  size_t received_bytes() const;

 private:
  [[noreturn]] void Fail(const std::string& what) const;

  const Form form_;
  std::unique_ptr<v1::CacheService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::StreamStepsRequest, v1::StreamStepsResponse>>
      stream_;
  client::Attachment attachment_;
  uint64_t step_ = 0;
  uint64_t applied_ = 0;
  v1::StepRequest unary_request_;
  v1::StepResponse unary_response_;
  v1::StreamStepsRequest request_;
  v1::StreamStepsResponse response_;
};

// Not thread-safe.
class EchoCaller {
 public:
  EchoCaller(const std::string& address, Form form);

  void Prepare(size_t request_bytes, size_t answer_bytes);
  void Call();

 private:
  const Form form_;
  std::unique_ptr<EchoService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<EchoRequest, EchoResponse>> stream_;
  EchoRequest request_;
  EchoResponse response_;
};

}  // namespace quire::bench

#endif  // QUIRE_TESTS_BENCH_WIRE_H_
