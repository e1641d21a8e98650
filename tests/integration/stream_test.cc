// Streams of steps to a real server, and what their end means for the lease.
#include <chrono>
#include <functional>
#include <thread>

#include "tests/integration/open_stream.h"
#include "tests/support/grpc_errors.h"

namespace quire::testing {
namespace {

using std::chrono::milliseconds;

// Asks until the answer is yes, for as long as a loaded machine may need.
bool Eventually(const std::function<bool()>& holds) {
  for (int i = 0; i < 3000; ++i) {
    if (holds()) return true;
    std::this_thread::sleep_for(milliseconds(10));
  }
  return false;
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

}  // namespace
}  // namespace quire::testing
