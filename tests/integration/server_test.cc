// A real server on its listeners.
#include <filesystem>

#include "cache_service/health_check.h"
#include "gtest/gtest.h"
#include "tests/support/grpc_errors.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_server.h"

namespace quire::testing {
namespace {

TEST(ServerTest, ServesTcpOnAnyFreePort) {
  TestServer server([](ServerOptions& options) { options.tcp_address = "127.0.0.1:0"; });
  ASSERT_GT(server.server().tcp_port(), 0);
  const auto stub = v1::AdminService::NewStub(
      server.NewChannel("127.0.0.1:" + std::to_string(server.server().tcp_port())));
  v1::ListPoolsResponse response;
  ASSERT_THAT(
      server.Call(*stub, &v1::AdminService::Stub::ListPools, v1::ListPoolsRequest(), &response),
      CallIsOk());
  EXPECT_EQ(response.pools_size(), 1);
}

TEST(ServerTest, SecondServerOnAnAddressIsRefused) {
  TestServer first([](ServerOptions& options) { options.tcp_address = "127.0.0.1:0"; });
  ServerOptions options;
  const SystemClock clock;
  options.unix_socket = first.folder().File("s");
  options.pools = {SharedPool(first.folder(), 4)};
  EXPECT_THAT(Server::Start(options, clock), IsInvalid("unix_socket"));
  options.unix_socket = "";
  options.tcp_address = "127.0.0.1:" + std::to_string(first.server().tcp_port());
  EXPECT_THAT(Server::Start(options, clock), IsInvalid("tcp_address"));
  // The first one is as it was, and the second left nothing.
  EXPECT_THAT(CheckHealth(first.folder().File("s"), std::chrono::seconds(10)), IsOk());
  EXPECT_EQ(first.folder().Names().size(), 2u);
}

TEST(ServerTest, SocketHasItsModeOnPurpose) {
  TestServer server([](ServerOptions& options) { options.unix_socket_mode = 0660; });
  const auto status = std::filesystem::status(server.folder().File("s"));
  EXPECT_EQ(status.permissions(), std::filesystem::perms(0660));
}

TEST(ServerTest, MemoryIsGrantedAndMustBeMappedBeforeTheFirstStep) {
  const TempFolder memory;
  TestServer server([&](ServerOptions& options) { options.pools = {SharedPool(memory, 4)}; });
  v1::AttachWorkerRequest request;
  request.set_worker("mapper");
  request.set_incarnation(1);
  request.set_model_fingerprint("m");
  *request.mutable_layout() = SharedPoolLayout();
  v1::AttachWorkerResponse attached;
  ASSERT_THAT(
      server.Call(server.cache(), &v1::CacheService::Stub::AttachWorker, request, &attached),
      CallIsOk());
  EXPECT_EQ(attached.block_count(), 4u);
  EXPECT_EQ(attached.block_bytes(), 4096u);
  ASSERT_EQ(attached.regions_size(), 1);
  EXPECT_EQ(attached.regions(0).bytes(), 4u * 4096);
  EXPECT_TRUE(std::filesystem::exists(attached.regions(0).path()));
  v1::StepRequest step;
  step.mutable_step()->set_lease_id(attached.lease_id());
  step.mutable_step()->set_epoch(attached.epoch());
  step.mutable_step()->set_step(1);
  v1::StepResponse response;
  EXPECT_THAT(server.Call(server.cache(), &v1::CacheService::Stub::Step, step, &response),
              IsRefused(grpc::INVALID_ARGUMENT, "INVALID_ARGUMENT"));
}

TEST(ServerTest, SeveralPoolsAreToldApart) {
  TestServer server([](ServerOptions& options) {
    options.pools.push_back(options.pools[0]);
    options.pools[1].pool.engine.pool_name = "second";
    options.pools[1].pool.engine.block_count = 20;
  });
  v1::AttachWorkerRequest request;
  request.set_worker("w");
  request.set_incarnation(1);
  request.set_model_fingerprint("m");
  v1::AttachWorkerResponse response;
  const auto attach = [&] {
    return server.Call(server.cache(), &v1::CacheService::Stub::AttachWorker, request, &response);
  };
  EXPECT_THAT(attach(), IsRefused(grpc::INVALID_ARGUMENT, "INVALID_ARGUMENT"));
  request.set_pool("second");
  ASSERT_THAT(attach(), CallIsOk());
  EXPECT_EQ(response.block_count(), 20u);
  v1::RenewLeaseRequest renew;
  renew.set_lease_id(response.lease_id());
  renew.set_epoch(response.epoch());
  v1::RenewLeaseResponse renewed;
  EXPECT_THAT(server.Call(server.cache(), &v1::CacheService::Stub::RenewLease, renew, &renewed),
              CallIsOk());
  EXPECT_EQ(renewed.lease_duration().seconds(), 30);
}

}  // namespace
}  // namespace quire::testing
