#include "cache_service/rpc/call_runner.h"

#include <grpcpp/test/default_reactor_test_peer.h>
#include <gtest/gtest.h>

#include <new>

#include "tests/support/fake_clock.h"
#include "tests/support/grpc_errors.h"

namespace quire {
namespace {

TEST(CallRunnerTest, MemoryThatRunsOutRefusesTheCall) {
  FakeClock clock;
  const Authenticator open = Authenticator::OpenToAll();
  RpcStats stats{RpcMethodNames()};
  const auto body = [](const Caller&) -> absl::Status { throw std::bad_alloc(); };
  for (const bool slow : {false, true}) {
    grpc::CallbackServerContext context;
    grpc::testing::DefaultReactorTestPeer peer(&context);
    {
      SerialLane lane;
      CallRunner calls(open, clock, stats, lane);
      if (slow) {
        calls.RunSlow(&context, RpcMethod::kFlushPool, body);
      } else {
        calls.Run(&context, RpcMethod::kAttachWorker, body);
      }
    }
    ASSERT_TRUE(peer.test_status_set());
    EXPECT_THAT(peer.test_status(),
                testing::IsRefused(grpc::StatusCode::RESOURCE_EXHAUSTED, "LIMIT_EXCEEDED"));
    EXPECT_EQ(testing::NumberIn(peer.test_status(), "field"), "server_memory");
  }
}

}  // namespace
}  // namespace quire
