// The services called directly, without a server: translation only.
#include <grpcpp/test/default_reactor_test_peer.h>

#include "cache_service/rpc/admin_service_impl.h"
#include "cache_service/rpc/cache_service_impl.h"
#include "cache_service/rpc/wire_message.h"
#include "gtest/gtest.h"
#include "tests/support/fake_clock.h"
#include "tests/support/grpc_errors.h"
#include "tests/support/status_matchers.h"

namespace quire {
namespace {

using testing::CallIsOk;
using testing::IsRefused;

std::vector<std::unique_ptr<Pool>> OnePool(const Clock& clock) {
  PoolOptions options;
  options.engine.pool_name = "p";
  options.engine.epoch = 7;
  options.engine.block_tokens = 4;
  options.engine.max_sequence_tokens = 0;
  options.engine.memory = PoolMemoryKind::kWorker;
  options.engine.block_count = 10;
  options.shape = ModelShape();
  options.shape->block_tokens = 4;
  std::vector<std::unique_ptr<Pool>> pools;
  pools.push_back(*Pool::Create(options, nullptr, clock));
  return pools;
}

class ServiceImplTest : public ::testing::Test {
 protected:
  // Calls one method as gRPC does and returns its status.
  template <typename Service, typename Method, typename Request, typename Response>
  grpc::Status Call(Service& service, Method method, const Request& request, Response* response) {
    grpc::CallbackServerContext context;
    grpc::testing::DefaultReactorTestPeer peer(&context);
    (service.*method)(&context, &request, response);
    EXPECT_TRUE(peer.test_status_set());
    return peer.test_status();
  }

  void Attach() {
    v1::AttachWorkerRequest request;
    request.set_worker("w");
    request.set_incarnation(1);
    request.set_model_fingerprint("m");
    request.set_lock_step(true);
    v1::AttachWorkerResponse response;
    ASSERT_THAT(Call(cache_, &CacheServiceImpl::AttachWorker, request, &response), CallIsOk());
    lease_ = response.lease_id();
    EXPECT_EQ(response.epoch(), 7u);
    EXPECT_EQ(response.block_count(), 10u);
    EXPECT_EQ(response.expected_step(), 1u);
    EXPECT_EQ(response.max_message_bytes(), 4096u);
    EXPECT_EQ(response.lease_duration().seconds(), 30);
  }

  v1::StepBatch* NewStep(uint64_t step) {
    request_.Clear();
    request_.mutable_step()->set_lease_id(lease_);
    request_.mutable_step()->set_epoch(7);
    request_.mutable_step()->set_step(step);
    return request_.mutable_step();
  }

  grpc::Status SendStep() {
    answer_.Clear();
    grpc::ByteBuffer request;
    grpc::ByteBuffer response;
    Serialize(request_, &request);
    const grpc::Status status = Call(cache_, &CacheServiceImpl::Step, request, &response);
    if (status.ok()) {
      EXPECT_THAT(Parse(response, &answer_), testing::IsOk());
    }
    return status;
  }

  // Begins sequence 1 with 6 tokens and commits it.
  void BeginAndCommit() {
    auto* batch = NewStep(1);
    auto* begin = batch->add_operations()->mutable_begin();
    begin->set_sequence(1);
    for (uint32_t token = 10; token < 16; ++token) begin->add_tokens(token);
    ASSERT_THAT(SendStep(), CallIsOk());
    auto* commit = NewStep(2)->add_operations()->mutable_commit();
    commit->set_sequence(1);
    commit->set_start_length(6);
    commit->set_committed_length(6);
    ASSERT_THAT(SendStep(), CallIsOk());
    ASSERT_EQ(answer_.answer().failures_size(), 0) << answer_.DebugString();
  }

  void BeginCommitAndComplete() {
    BeginAndCommit();
    NewStep(3);
    ASSERT_THAT(SendStep(), CallIsOk());
  }

  FakeClock clock_;
  PoolRegistry pools_{OnePool(clock_)};
  Authenticator authenticator_ = Authenticator::OpenToAll();
  RpcStats stats_{RpcMethodNames()};
  SerialLane lane_;
  StreamRegistry streams_;
  CallRunner calls_{authenticator_, clock_, stats_, lane_};
  CacheServiceImpl cache_{pools_, calls_, streams_, 4096};
  std::optional<Duration> drained_;
  AdminServiceImpl admin_{pools_, calls_, [this](std::optional<Duration> deadline) {
                            drained_ = deadline;
                            return uint64_t{3};
                          }};
  std::string lease_;
  v1::StepRequest request_;
  v1::StepResponse answer_;
};

TEST_F(ServiceImplTest, StepAnswersWithTablesAndCounts) {
  Attach();
  auto* begin = NewStep(1)->add_operations()->mutable_begin();
  begin->set_sequence(1);
  for (uint32_t token = 10; token < 16; ++token) begin->add_tokens(token);
  ASSERT_THAT(SendStep(), CallIsOk());
  const v1::StepAnswer& answer = answer_.answer();
  EXPECT_EQ(answer.step(), 1u);
  ASSERT_EQ(answer.begins_size(), 1);
  EXPECT_EQ(answer.begins(0).length(), 6u);
  EXPECT_EQ(answer.begins(0).reused_tokens(), 0u);
  ASSERT_EQ(answer.table_size(), 1);
  EXPECT_EQ(answer.table(0).blocks_size(), 2);
  EXPECT_EQ(answer.pool().free(), 8u);
}

TEST_F(ServiceImplTest, TablesPeekAndAdminSeeTheSequence) {
  Attach();
  BeginCommitAndComplete();

  v1::GetBlockTableRequest tables;
  tables.set_lease_id(lease_);
  tables.set_epoch(7);
  tables.add_sequences(1);
  v1::GetBlockTableResponse table;
  ASSERT_THAT(Call(cache_, &CacheServiceImpl::GetBlockTable, tables, &table), CallIsOk());
  ASSERT_EQ(table.tables_size(), 1);
  EXPECT_EQ(table.tables(0).committed(), 6u);
  EXPECT_EQ(table.tables(0).groups(0).blocks_size(), 2);

  v1::PeekPrefixRequest peek;
  for (uint32_t token = 10; token < 20; ++token) peek.add_tokens(token);
  v1::PeekPrefixResponse prefix;
  ASSERT_THAT(Call(cache_, &CacheServiceImpl::PeekPrefix, peek, &prefix), CallIsOk());
  ASSERT_EQ(prefix.tiers_size(), 1);
  EXPECT_EQ(prefix.tiers(0).tier(), "device");
  EXPECT_EQ(prefix.tiers(0).reusable_tokens(), 4u);

  v1::GetSequenceRequest which;
  which.set_worker("w");
  which.set_handle(1);
  v1::GetSequenceResponse sequence;
  ASSERT_THAT(Call(admin_, &AdminServiceImpl::GetSequence, which, &sequence), CallIsOk());
  EXPECT_EQ(sequence.sequence().length(), 6u);
  EXPECT_EQ(sequence.sequence().groups(0).blocks_size(), 2);

  v1::GetPoolResponse pool;
  ASSERT_THAT(Call(admin_, &AdminServiceImpl::GetPool, v1::GetPoolRequest(), &pool), CallIsOk());
  EXPECT_TRUE(pool.pool().layout_known());
  EXPECT_EQ(pool.pool().memory(), v1::POOL_MEMORY_WORKER);
  EXPECT_EQ(pool.pool().blocks().free(), 8u);
  EXPECT_EQ(pool.pool().sequences(), 1u);
  EXPECT_EQ(pool.pool().workers(), 1u);
}

TEST_F(ServiceImplTest, PinOfPendingContentSaysWhatItWaitsFor) {
  Attach();
  BeginAndCommit();
  v1::PinPrefixRequest request;
  for (uint32_t token = 10; token < 14; ++token) request.mutable_prefix()->add_tokens(token);
  request.set_owner("me");
  request.mutable_duration()->set_seconds(10);
  v1::PinPrefixResponse pin;
  const grpc::Status refused = Call(admin_, &AdminServiceImpl::PinPrefix, request, &pin);
  EXPECT_THAT(refused, IsRefused(grpc::INVALID_ARGUMENT, "INVALID_ARGUMENT"));
  EXPECT_THAT(refused.error_message(), ::testing::HasSubstr("pending until its step completes"));
  NewStep(3);
  ASSERT_THAT(SendStep(), CallIsOk());
  EXPECT_THAT(Call(admin_, &AdminServiceImpl::PinPrefix, request, &pin), CallIsOk());
}

TEST_F(ServiceImplTest, PinsAreListedAndEnd) {
  Attach();
  BeginCommitAndComplete();
  v1::PinPrefixRequest request;
  for (uint32_t token = 10; token < 14; ++token) request.mutable_prefix()->add_tokens(token);
  v1::PinPrefixResponse pin;
  EXPECT_THAT(Call(admin_, &AdminServiceImpl::PinPrefix, request, &pin),
              IsRefused(grpc::INVALID_ARGUMENT, "INVALID_ARGUMENT"));
  request.set_owner("me");
  EXPECT_THAT(Call(admin_, &AdminServiceImpl::PinPrefix, request, &pin),
              IsRefused(grpc::INVALID_ARGUMENT, "INVALID_ARGUMENT"));
  request.mutable_duration()->set_seconds(10);
  ASSERT_THAT(Call(admin_, &AdminServiceImpl::PinPrefix, request, &pin), CallIsOk());
  EXPECT_EQ(pin.pinned_tokens(), 4u);

  v1::ListPinsResponse list;
  ASSERT_THAT(Call(admin_, &AdminServiceImpl::ListPins, v1::ListPinsRequest(), &list), CallIsOk());
  ASSERT_EQ(list.pins_size(), 1);
  EXPECT_EQ(list.pins(0).owner(), "me");
  EXPECT_EQ(list.pins(0).remaining().seconds(), 10);

  v1::UnpinPrefixRequest unpin;
  unpin.set_pin_id(pin.pin_id());
  v1::UnpinPrefixResponse nothing;
  EXPECT_THAT(Call(admin_, &AdminServiceImpl::UnpinPrefix, unpin, &nothing), CallIsOk());
  EXPECT_THAT(Call(admin_, &AdminServiceImpl::UnpinPrefix, unpin, &nothing),
              IsRefused(grpc::NOT_FOUND, "PIN_NOT_FOUND"));
}

TEST_F(ServiceImplTest, ListsHavePages) {
  Attach();
  auto* batch = NewStep(1);
  for (uint64_t handle = 1; handle <= 5; ++handle) {
    auto* begin = batch->add_operations()->mutable_begin();
    begin->set_sequence(handle);
    begin->add_tokens(static_cast<uint32_t>(handle));
  }
  ASSERT_THAT(SendStep(), CallIsOk());
  v1::ListSequencesRequest request;
  request.set_page_size(2);
  std::vector<uint64_t> handles;
  do {
    v1::ListSequencesResponse page;
    ASSERT_THAT(Call(admin_, &AdminServiceImpl::ListSequences, request, &page), CallIsOk());
    EXPECT_LE(page.sequences_size(), 2);
    for (const auto& sequence : page.sequences()) handles.push_back(sequence.handle());
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_EQ(handles, (std::vector<uint64_t>{1, 2, 3, 4, 5}));
}

TEST_F(ServiceImplTest, APageTokenIsOfItsRequestAlone) {
  Attach();
  auto* batch = NewStep(1);
  for (uint64_t handle = 1; handle <= 2; ++handle) {
    auto* begin = batch->add_operations()->mutable_begin();
    begin->set_sequence(handle);
    begin->add_tokens(1);
  }
  ASSERT_THAT(SendStep(), CallIsOk());
  v1::ListSequencesRequest request;
  v1::ListSequencesResponse page;
  request.set_page_size(1);
  ASSERT_THAT(Call(admin_, &AdminServiceImpl::ListSequences, request, &page), CallIsOk());
  request.set_page_token(page.next_page_token());
  ASSERT_FALSE(request.page_token().empty());
  // The only pool's name says no more than none.
  request.set_pool("p");
  EXPECT_THAT(Call(admin_, &AdminServiceImpl::ListSequences, request, &page), CallIsOk());
  request.set_worker("w");
  EXPECT_THAT(Call(admin_, &AdminServiceImpl::ListSequences, request, &page),
              IsRefused(grpc::INVALID_ARGUMENT, "INVALID_ARGUMENT"));
  const auto expect_refused = [&](auto method, auto other, auto response) {
    other.set_page_token(request.page_token());
    EXPECT_THAT(Call(admin_, method, other, &response),
                IsRefused(grpc::INVALID_ARGUMENT, "INVALID_ARGUMENT"));
  };
  using Admin = AdminServiceImpl;
  expect_refused(&Admin::ListPools, v1::ListPoolsRequest(), v1::ListPoolsResponse());
  expect_refused(&Admin::ListWorkers, v1::ListWorkersRequest(), v1::ListWorkersResponse());
  expect_refused(&Admin::ListPins, v1::ListPinsRequest(), v1::ListPinsResponse());
}

TEST_F(ServiceImplTest, EndWorkerEndsItsLease) {
  Attach();
  BeginCommitAndComplete();
  v1::EndWorkerRequest request;
  request.set_worker("w");
  v1::EndWorkerResponse response;
  ASSERT_THAT(Call(admin_, &AdminServiceImpl::EndWorker, request, &response), CallIsOk());
  EXPECT_EQ(response.sequences_ended(), 1u);
  EXPECT_THAT(Call(admin_, &AdminServiceImpl::EndWorker, request, &response),
              IsRefused(grpc::NOT_FOUND, "WORKER_NOT_FOUND"));
  NewStep(4);
  EXPECT_THAT(SendStep(), IsRefused(grpc::FAILED_PRECONDITION, "LEASE_EXPIRED"));
}

TEST_F(ServiceImplTest, DrainPassesItsDeadlineOn) {
  v1::DrainRequest request;
  request.mutable_deadline()->set_seconds(5);
  v1::DrainResponse response;
  ASSERT_THAT(Call(admin_, &AdminServiceImpl::Drain, request, &response), CallIsOk());
  EXPECT_EQ(response.sequences_running(), 3u);
  EXPECT_EQ(drained_, std::chrono::seconds(5));
  request.mutable_deadline()->set_seconds(-5);
  EXPECT_THAT(Call(admin_, &AdminServiceImpl::Drain, request, &response),
              IsRefused(grpc::INVALID_ARGUMENT, "INVALID_ARGUMENT"));
}

TEST_F(ServiceImplTest, TablesThatDoNotFitIntoAMessageAreRefused) {
  Attach();
  auto* batch = NewStep(1);
  v1::GetBlockTableRequest tables;
  tables.set_lease_id(lease_);
  tables.set_epoch(7);
  auto* begin = batch->add_operations()->mutable_begin();
  begin->set_sequence(1);
  begin->add_tokens(1);
  ASSERT_THAT(SendStep(), CallIsOk());
  for (int i = 0; i < 500; ++i) tables.add_sequences(1);
  v1::GetBlockTableResponse response;
  EXPECT_THAT(Call(cache_, &CacheServiceImpl::GetBlockTable, tables, &response),
              IsRefused(grpc::RESOURCE_EXHAUSTED, "LIMIT_EXCEEDED"));
  for (int i = 0; i < 600; ++i) tables.add_sequences(1);
  EXPECT_THAT(Call(cache_, &CacheServiceImpl::GetBlockTable, tables, &response),
              IsRefused(grpc::INVALID_ARGUMENT, "INVALID_ARGUMENT"));
}

TEST_F(ServiceImplTest, EveryCallIsCountedAndTimedOnce) {
  Attach();
  NewStep(9);
  EXPECT_THAT(SendStep(), IsRefused(grpc::ABORTED, "STEP_OUT_OF_ORDER"));
  const auto step = static_cast<size_t>(RpcMethod::kStep);
  EXPECT_EQ(stats_.Count(step, grpc::ABORTED), 1u);
  EXPECT_EQ(stats_.Latency(step).count, 1u);
  EXPECT_EQ(stats_.methods()[step].name, "Step");
  EXPECT_EQ(stats_.methods()[static_cast<size_t>(RpcMethod::kDrain)].name, "Drain");
}

}  // namespace
}  // namespace quire
