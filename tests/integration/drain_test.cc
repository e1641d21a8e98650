// The orderly end of a real server.
#include <chrono>
#include <filesystem>
#include <thread>

#include "cache_service/health_check.h"
#include "tests/integration/open_stream.h"
#include "tests/support/grpc_errors.h"
#include "tests/support/status_matchers.h"

namespace quire::testing {
namespace {

using std::chrono::seconds;

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
