// A real server on its socket: listeners, streams, identity, drain.
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "cache_service/health_check.h"
#include "gtest/gtest.h"
#include "tests/support/grpc_errors.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_server.h"

namespace quire::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Stream = grpc::ClientReaderWriter<v1::StreamStepsRequest, v1::StreamStepsResponse>;

// Asks until the answer is yes, for as long as a loaded machine may need.
bool Eventually(const std::function<bool()>& holds) {
  for (int i = 0; i < 3000; ++i) {
    if (holds()) return true;
    std::this_thread::sleep_for(milliseconds(10));
  }
  return false;
}

// One open stream of a lease.
class OpenStream {
 public:
  OpenStream(TestServer& server, const v1::AttachWorkerResponse& attached)
      : attached_(attached), calls_(server.cache().StreamSteps(&context_)) {}

  // With a handle: begins a sequence of one token.
  bool Send(uint64_t step, uint64_t handle = 0) { return SendFor(attached_, step, handle); }

  bool SendFor(const v1::AttachWorkerResponse& attached, uint64_t step, uint64_t handle = 0) {
    v1::StreamStepsRequest request;
    request.mutable_step()->set_lease_id(attached.lease_id());
    request.mutable_step()->set_epoch(attached.epoch());
    request.mutable_step()->set_step(step);
    if (handle != 0) {
      v1::BeginOperation* begin = request.mutable_step()->add_operations()->mutable_begin();
      begin->set_sequence(handle);
      begin->add_tokens(static_cast<uint32_t>(handle));
    }
    return calls_->Write(request);
  }

  v1::StreamStepsResponse Receive() {
    v1::StreamStepsResponse response;
    EXPECT_TRUE(calls_->Read(&response));
    return response;
  }

  // Waits for the server's end of the stream.
  grpc::Status Finish() {
    v1::StreamStepsResponse ignored;
    while (calls_->Read(&ignored)) {
    }
    return calls_->Finish();
  }

  void CloseSendingSide() { calls_->WritesDone(); }

  void Break() { context_.TryCancel(); }

 private:
  const v1::AttachWorkerResponse attached_;
  grpc::ClientContext context_;
  std::unique_ptr<Stream> calls_;
};

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
  EXPECT_THAT(CheckHealth(first.folder().File("s"), seconds(10)), IsOk());
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

TEST(StreamTest, PipelinedStepsAreAnsweredInOrder) {
  TestServer server;
  TestWorker worker(server);
  OpenStream stream(server, worker.attached());
  for (uint64_t step = 1; step <= 3; ++step) ASSERT_TRUE(stream.Send(step, step));
  for (uint64_t step = 1; step <= 3; ++step) {
    const v1::StreamStepsResponse response = stream.Receive();
    EXPECT_EQ(response.answer().step(), step);
    EXPECT_EQ(response.answer().begins_size(), 1);
  }
  stream.CloseSendingSide();
  EXPECT_THAT(stream.Finish(), CallIsOk());
}

TEST(StreamTest, RefusedStepIsAMessageAndTheStreamGoesOn) {
  TestServer server;
  TestWorker worker(server);
  OpenStream stream(server, worker.attached());
  ASSERT_TRUE(stream.Send(1));
  EXPECT_TRUE(stream.Receive().has_answer());
  ASSERT_TRUE(stream.Send(7));
  const v1::StreamStepsResponse refused = stream.Receive();
  ASSERT_TRUE(refused.has_refusal());
  EXPECT_EQ(refused.refusal().step(), 7u);
  EXPECT_EQ(refused.refusal().code(), grpc::ABORTED);
  EXPECT_EQ(refused.refusal().error().reason(), v1::ERROR_REASON_STEP_OUT_OF_ORDER);
  ASSERT_TRUE(stream.Send(2));
  EXPECT_TRUE(stream.Receive().has_answer());
}

TEST(StreamTest, NewerStreamOfALeaseEndsTheOlder) {
  TestServer server;
  TestWorker worker(server);
  OpenStream older(server, worker.attached());
  ASSERT_TRUE(older.Send(1, 1));
  older.Receive();
  OpenStream newer(server, worker.attached());
  // The step repeated there is answered from memory.
  ASSERT_TRUE(newer.Send(1, 1));
  EXPECT_EQ(newer.Receive().answer().begins_size(), 1);
  EXPECT_EQ(older.Finish().error_code(), grpc::CANCELLED);
  ASSERT_TRUE(newer.Send(2));
  EXPECT_TRUE(newer.Receive().has_answer());
}

TEST(StreamTest, BelongsToOneLease) {
  const TempFolder memory;
  TestServer server([&](ServerOptions& options) { options.pools = {SharedPool(memory, 4)}; });
  TestWorker one(server, "one"), two(server, "two");
  OpenStream stream(server, one.attached());
  ASSERT_TRUE(stream.Send(1));
  EXPECT_TRUE(stream.Receive().has_answer());
  ASSERT_TRUE(stream.SendFor(two.attached(), 1));
  EXPECT_EQ(stream.Receive().refusal().error().reason(), v1::ERROR_REASON_INVALID_ARGUMENT);
}

class GraceTest : public ::testing::Test {
 protected:
  bool LeaseIsGood() {
    v1::ListWorkersResponse response;
    EXPECT_THAT(server_.Call(server_.admin(), &v1::AdminService::Stub::ListWorkers,
                             v1::ListWorkersRequest(), &response),
                CallIsOk());
    return response.workers_size() == 1;
  }

  TestServer server_{[](ServerOptions& options) {
    options.pools[0].pool.engine.stream_grace = milliseconds(200);
  }};
  TestWorker worker_{server_};
};

TEST_F(GraceTest, BrokenStreamLetsTheLeaseRunDown) {
  OpenStream stream(server_, worker_.attached());
  ASSERT_TRUE(stream.Send(1, 1));
  stream.Receive();
  EXPECT_TRUE(LeaseIsGood());
  stream.Break();
  EXPECT_TRUE(Eventually([this] { return !LeaseIsGood(); }));
}

TEST_F(GraceTest, StreamClosedByTheWorkerIsNoBreak) {
  OpenStream stream(server_, worker_.attached());
  ASSERT_TRUE(stream.Send(1, 1));
  stream.Receive();
  stream.CloseSendingSide();
  EXPECT_THAT(stream.Finish(), CallIsOk());
  std::this_thread::sleep_for(milliseconds(600));
  EXPECT_TRUE(LeaseIsGood());
}

TEST_F(GraceTest, ReplacedStreamIsNoBreak) {
  OpenStream older(server_, worker_.attached());
  ASSERT_TRUE(older.Send(1, 1));
  older.Receive();
  OpenStream newer(server_, worker_.attached());
  ASSERT_TRUE(newer.Send(2, 2));
  newer.Receive();
  EXPECT_EQ(older.Finish().error_code(), grpc::CANCELLED);
  std::this_thread::sleep_for(milliseconds(600));
  EXPECT_TRUE(LeaseIsGood());
}

constexpr char kWorkerToken[] = "worker-0123456789";
constexpr char kAdminToken[] = "admin-0123456789";

class IdentityTest : public ::testing::Test {
 protected:
  template <typename Method, typename Request, typename Response>
  grpc::Status Admin(Method method, const Request& request, Response* response, const char* token) {
    return server_.Call(server_.admin(), method, request, response, token);
  }

  TempFolder tokens_;
  TestServer server_{[this](ServerOptions& options) {
    options.token_file = tokens_.File("tokens");
    std::ofstream(options.token_file) << kWorkerToken << " acme worker\n"
                                      << kAdminToken << " * admin\n";
  }};
};

TEST_F(IdentityTest, CallsNeedATokenWithTheRight) {
  v1::ListPoolsResponse response;
  EXPECT_THAT(Admin(&v1::AdminService::Stub::ListPools, v1::ListPoolsRequest(), &response, ""),
              IsRefused(grpc::UNAUTHENTICATED, "UNAUTHENTICATED"));
  EXPECT_THAT(Admin(&v1::AdminService::Stub::ListPools, v1::ListPoolsRequest(), &response,
                    "wrong-0123456789"),
              IsRefused(grpc::UNAUTHENTICATED, "UNAUTHENTICATED"));
  EXPECT_THAT(
      Admin(&v1::AdminService::Stub::ListPools, v1::ListPoolsRequest(), &response, kWorkerToken),
      IsRefused(grpc::PERMISSION_DENIED, "PERMISSION_DENIED"));
  EXPECT_THAT(
      Admin(&v1::AdminService::Stub::ListPools, v1::ListPoolsRequest(), &response, kAdminToken),
      CallIsOk());
}

TEST_F(IdentityTest, StreamWithoutATokenEndsAtOnce) {
  OpenStream stream(server_, v1::AttachWorkerResponse());
  EXPECT_THAT(stream.Finish(), IsRefused(grpc::UNAUTHENTICATED, "UNAUTHENTICATED"));
}

TEST_F(IdentityTest, TenantIsTheCallersAndForeignOnesAreRefused) {
  TestWorker worker(server_, "w", kWorkerToken);
  worker.Begin(1, 8);
  worker.Commit(1, 8);
  worker.NewStep();
  worker.MustSend();
  v1::PeekPrefixRequest peek;
  for (uint32_t token = 1; token <= 9; ++token) peek.add_tokens(token);
  v1::PeekPrefixResponse found;
  const auto peek_as = [&](const char* token) {
    found.Clear();
    return server_.Call(server_.cache(), &v1::CacheService::Stub::PeekPrefix, peek, &found, token);
  };
  ASSERT_THAT(peek_as(kWorkerToken), CallIsOk());
  EXPECT_EQ(found.tiers(0).reusable_tokens(), 8u);
  // The content belongs to acme, not to no tenant.
  ASSERT_THAT(peek_as(kAdminToken), CallIsOk());
  EXPECT_EQ(found.tiers(0).reusable_tokens(), 0u);
  peek.mutable_namespace_()->set_tenant("acme");
  ASSERT_THAT(peek_as(kAdminToken), CallIsOk());
  EXPECT_EQ(found.tiers(0).reusable_tokens(), 8u);
  peek.mutable_namespace_()->set_tenant("other");
  EXPECT_THAT(peek_as(kWorkerToken), IsRefused(grpc::PERMISSION_DENIED, "PERMISSION_DENIED"));
  v1::BeginOperation* begin = worker.NewStep().add_operations()->mutable_begin();
  begin->set_sequence(2);
  begin->add_tokens(1);
  begin->mutable_namespace_()->set_tenant("other");
  v1::StepResponse response;
  EXPECT_THAT(worker.Send(&response), IsRefused(grpc::PERMISSION_DENIED, "PERMISSION_DENIED"));
}

class DrainTest : public ::testing::Test {
 protected:
  v1::DrainResponse Drain(int64_t deadline_seconds) {
    v1::DrainRequest request;
    request.mutable_deadline()->set_seconds(deadline_seconds);
    v1::DrainResponse response;
    EXPECT_THAT(server_.Call(server_.admin(), &v1::AdminService::Stub::Drain, request, &response),
                CallIsOk());
    return response;
  }

  TestServer server_;
};

TEST_F(DrainTest, RunningSequencesGoOnAndNothingNewIsAdmitted) {
  TestWorker worker(server_);
  worker.Begin(1, 6);
  EXPECT_THAT(CheckHealth(server_.folder().File("s"), seconds(10)), IsOk());
  EXPECT_EQ(Drain(60).sequences_running(), 1u);
  EXPECT_FALSE(CheckHealth(server_.folder().File("s"), seconds(10)).ok());

  v1::AttachWorkerRequest attach;
  attach.set_worker("late");
  attach.set_model_fingerprint("m");
  v1::AttachWorkerResponse attached;
  EXPECT_THAT(
      server_.Call(server_.cache(), &v1::CacheService::Stub::AttachWorker, attach, &attached),
      IsRefused(grpc::UNAVAILABLE, "DRAINING"));
  v1::BeginOperation* begin = worker.NewStep().add_operations()->mutable_begin();
  begin->set_sequence(2);
  begin->add_tokens(1);
  v1::StepResponse refused;
  ASSERT_THAT(worker.Send(&refused), CallIsOk());
  ASSERT_EQ(refused.answer().failures_size(), 1);
  EXPECT_EQ(refused.answer().failures(0).error().reason(), v1::ERROR_REASON_DRAINING);

  worker.Commit(1, 6);
  v1::RenewLeaseRequest renew;
  renew.set_lease_id(worker.attached().lease_id());
  renew.set_epoch(worker.attached().epoch());
  v1::RenewLeaseResponse renewed;
  EXPECT_THAT(server_.Call(server_.cache(), &v1::CacheService::Stub::RenewLease, renew, &renewed),
              CallIsOk());
  EXPECT_TRUE(renewed.draining());

  worker.NewStep().add_operations()->mutable_finish()->set_sequence(1);
  worker.MustSend();
  const auto start = std::chrono::steady_clock::now();
  server_.server().WaitUntilDrained();
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(30));
}

TEST_F(DrainTest, DeadlineEndsWhatStillRuns) {
  TestWorker worker(server_);
  worker.Begin(1, 6);
  OpenStream stream(server_, worker.attached());
  ASSERT_TRUE(stream.Send(2));
  stream.Receive();
  Drain(0);
  server_.server().WaitUntilDrained();
  EXPECT_EQ(server_.server().pools().LiveSequences(), 1u);
  std::thread stopping([this] { server_.server().Stop(); });
  EXPECT_THAT(stream.Finish(), IsRefused(grpc::UNAVAILABLE, "DRAINING"));
  stopping.join();
  EXPECT_FALSE(std::filesystem::exists(server_.folder().File("s")));
}

}  // namespace
}  // namespace quire::testing
