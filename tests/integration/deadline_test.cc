// A call whose deadline passed while it waited is refused before it changes anything.
#include <grpcpp/grpcpp.h>

#include <future>
#include <thread>

#include "cache_service/rpc/admin_service_impl.h"
#include "cache_service/rpc/cache_service_impl.h"
#include "gtest/gtest.h"
#include "quire/v1/admin_service.grpc.pb.h"
#include "tests/support/grpc_errors.h"
#include "tests/support/temp_folder.h"

namespace quire::testing {
namespace {

constexpr std::chrono::milliseconds kTimeout(200);

std::vector<std::unique_ptr<Pool>> OnePool(const Clock& clock) {
  PoolOptions options;
  options.engine.block_tokens = 4;
  options.engine.max_sequence_tokens = 0;
  options.engine.memory = PoolMemoryKind::kWorker;
  options.engine.block_count = 10;
  std::vector<std::unique_ptr<Pool>> pools;
  pools.push_back(*Pool::Create(options, nullptr, clock));
  return pools;
}

// The services on a real listener, with the slow lane in the test's hands.
class DeadlineTest : public ::testing::Test {
 protected:
  DeadlineTest() {
    grpc::ServerBuilder builder;
    const std::string address = "unix:" + folder_.File("s");
    builder.AddListeningPort(address, grpc::InsecureServerCredentials());
    builder.RegisterService(&cache_);
    server_ = builder.BuildAndStart();
    stub_ =
        v1::CacheService::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  }

  // The first attach of a pool waits on the slow lane.
  grpc::Status Attach(std::chrono::milliseconds timeout) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + timeout);
    v1::AttachWorkerRequest request;
    request.set_worker("w");
    request.set_incarnation(1);
    request.set_model_fingerprint("m");
    v1::AttachWorkerResponse response;
    return stub_->AttachWorker(&context, request, &response);
  }

  // Waits until everything posted before has run.
  void FlushLane() {
    std::promise<void> done;
    lane_.Post([&done] { done.set_value(); });
    done.get_future().wait();
  }

  TempFolder folder_;
  SystemClock clock_;
  PoolRegistry pools_{OnePool(clock_)};
  Authenticator authenticator_ = Authenticator::OpenToAll();
  RpcStats stats_{RpcMethodNames()};
  SerialLane lane_;
  StreamRegistry streams_;
  CallRunner calls_{authenticator_, clock_, stats_, lane_};
  CacheServiceImpl cache_{pools_, calls_, streams_, 1 << 20};
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::CacheService::Stub> stub_;
};

TEST_F(DeadlineTest, LateCallChangesNothing) {
  std::promise<void> release;
  lane_.Post([released = release.get_future().share()] { released.wait(); });
  const auto sent = std::chrono::system_clock::now();
  EXPECT_EQ(Attach(kTimeout).error_code(), grpc::DEADLINE_EXCEEDED);
  // The wire carries what was left when the call was sent, so that the server's deadline can lie
  // behind the caller's by as long as the call was under way: less than the timeout.
  std::this_thread::sleep_until(sent + 2 * kTimeout);
  release.set_value();
  FlushLane();
  EXPECT_EQ(pools_.pools()[0]->engine(), nullptr);
  const auto attach = static_cast<size_t>(RpcMethod::kAttachWorker);
  EXPECT_EQ(stats_.Count(attach, grpc::OK), 0u);
  EXPECT_EQ(stats_.Latency(attach).count, 1u);
  EXPECT_THAT(Attach(std::chrono::seconds(30)), CallIsOk());
  EXPECT_NE(pools_.pools()[0]->engine(), nullptr);
}

}  // namespace
}  // namespace quire::testing
