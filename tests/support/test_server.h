// A real server on a Unix socket of its own, in this process, and stubs to call it.
#ifndef QUIRE_TESTS_SUPPORT_TEST_SERVER_H_
#define QUIRE_TESTS_SUPPORT_TEST_SERVER_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "cache_service/base/clock.h"
#include "cache_service/rpc/server.h"
#include "quire/v1/admin_service.grpc.pb.h"
#include "quire/v1/cache_service.grpc.pb.h"
#include "tests/support/temp_folder.h"

namespace quire::testing {

// One pool of 10 blocks of 4 tokens, of memory that the worker keeps, unless changed.
class TestServer {
 public:
  using Change = std::function<void(ServerOptions&)>;

  explicit TestServer(const Change& change = nullptr);

  Server& server() { return *server_; }

  std::string address() const { return "unix:" + options_.unix_socket; }

  const TempFolder& folder() const { return folder_; }

  v1::CacheService::Stub& cache() { return *cache_; }

  v1::AdminService::Stub& admin() { return *admin_; }

  // A channel that shares no connection with others.
  std::shared_ptr<grpc::Channel> NewChannel(const std::string& address) const;

  // Calls with a deadline, and a token unless it is empty.
  template <typename Stub, typename Request, typename Response>
  grpc::Status Call(Stub& stub,
                    grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                    const Request& request, Response* response, const std::string& token = "") {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
    return (stub.*method)(&context, request, response);
  }

 private:
  TempFolder folder_;
  ServerOptions options_;
  SystemClock clock_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<v1::CacheService::Stub> cache_;
  std::unique_ptr<v1::AdminService::Stub> admin_;
};

// A pool with memory, of blocks of 4096 bytes and 4 tokens, and what a worker that maps it says.
v1::ModelLayout SharedPoolLayout();
PoolSetup SharedPool(const TempFolder& folder, uint32_t blocks);

// An attached worker that sends lock-step steps.
class TestWorker {
 public:
  enum class Memory { kDeclined, kMapped };

  // Fails the test if the attach is refused. With kMapped the caller locks the region before steps.
  explicit TestWorker(TestServer& server, const std::string& name = "w",
                      const std::string& token = "", Memory memory = Memory::kDeclined);

  const v1::AttachWorkerResponse& attached() const { return attached_; }

  // A step with the next number; send it after adding operations.
  v1::StepBatch& NewStep();
  grpc::Status Send(v1::StepResponse* response);
  // Sends and takes the answer for granted.
  v1::StepAnswer MustSend();

  // Begins a sequence of `length` tokens first, first + 1, ...
  void Begin(uint64_t handle, uint32_t length, uint32_t first = 1);
  void Commit(uint64_t handle, uint32_t length);
  // Table of the first group.
  v1::TableRun Table(uint64_t handle);

 private:
  TestServer& server_;
  const std::string token_;
  v1::AttachWorkerResponse attached_;
  v1::StepRequest request_;
  uint64_t next_step_ = 1;
};

}  // namespace quire::testing

#endif  // QUIRE_TESTS_SUPPORT_TEST_SERVER_H_
