// Steps and errors on the wire.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "worker/client/proto_convert.h"
#include "worker/client/status_convert.h"

namespace quire::client {
namespace {

using testing::ElementsAre;

TEST(StepTest, AdvancesThatFollowOneAnotherShareColumns) {
  Step step;
  const TokenId tokens[] = {7, 8};
  const OperationId first = step.Advance(1, 10, {tokens, 1}, 3);
  const OperationId second = step.Advance(2, 20, {tokens, 2}, 4);
  const OperationId finish = step.Finish(3);
  const OperationId third = step.Advance(4, 40, {});
  EXPECT_EQ(first, (OperationId{0, 0}));
  EXPECT_EQ(second, (OperationId{0, 1}));
  EXPECT_EQ(finish, (OperationId{1, 0}));
  EXPECT_EQ(third, (OperationId{2, 0}));
  EXPECT_EQ(step.operation_count(), 4u);

  v1::StepBatch batch;
  ToProto(step, batch);
  ASSERT_EQ(batch.operations_size(), 3);
  const v1::AdvanceOperation& advance = batch.operations(0).advance();
  EXPECT_THAT(advance.sequences(), ElementsAre(1, 2));
  EXPECT_THAT(advance.start_lengths(), ElementsAre(10, 20));
  EXPECT_THAT(advance.tokens(), ElementsAre(7, 7, 8));
  EXPECT_THAT(advance.token_counts(), ElementsAre(1, 2));
  EXPECT_THAT(advance.aheads(), ElementsAre(3, 4));
}

TEST(StepTest, EveryFieldOfABeginTravels) {
  Step step;
  step.Begin(
      {.sequence = 9,
       .tokens = {1, 2},
       .name_space = {.adapter = "a", .salt = "s", .tenant = "t", .weights_version = "v"},
       .allocate_tokens = 0,
       .recompute_tail = 1,
       .skip_cache_read = true,
       .retention =
           {{.start = 1, .end = 2, .priority = 0, .duration = std::chrono::milliseconds(1500)}},
       .digests = {{.start = 0, .end = 1, .digest = std::string(32, 'd')}},
       .reserve_tokens = 100,
       .reserve_sequences = 3});
  v1::StepBatch batch;
  ToProto(step, batch);
  const v1::BeginOperation& begin = batch.operations(0).begin();
  EXPECT_EQ(begin.sequence(), 9u);
  EXPECT_THAT(begin.tokens(), ElementsAre(1, 2));
  EXPECT_EQ(begin.namespace_().adapter() + begin.namespace_().salt() + begin.namespace_().tenant() +
                begin.namespace_().weights_version(),
            "astv");
  EXPECT_TRUE(begin.has_allocate_tokens());
  EXPECT_EQ(begin.recompute_tail(), 1u);
  EXPECT_TRUE(begin.skip_cache_read());
  EXPECT_TRUE(begin.retention(0).has_priority());
  EXPECT_EQ(begin.retention(0).end(), 2u);
  EXPECT_EQ(begin.retention(0).duration().seconds(), 1);
  EXPECT_EQ(begin.retention(0).duration().nanos(), 500000000);
  EXPECT_EQ(begin.digests(0).digest().size(), 32u);
  EXPECT_EQ(begin.reserve_tokens(), 100u);
  EXPECT_EQ(begin.reserve_sequences(), 3u);
}

TEST(AnswerTest, NoBlockIsMinusOneAndFailuresKeepTheirNumbers) {
  v1::StepAnswer proto;
  proto.set_step(4);
  v1::TableRun& run = *proto.add_table();
  run.set_sequence(1);
  run.add_blocks(0xFFFFFFFFu);
  run.add_blocks(0);
  v1::OperationFailure& failure = *proto.add_failures();
  failure.set_operation(2);
  failure.set_entry(5);
  failure.set_part(v1::ADVANCE_PART_AHEAD);
  failure.set_reserved(12);
  failure.mutable_error()->set_reason(v1::ERROR_REASON_POOL_EXHAUSTED);
  v1::ErrorNumber& number = *failure.mutable_error()->add_numbers();
  number.set_name("needed");
  number.set_value("3");
  const StepAnswer answer = FromProto(proto);
  EXPECT_THAT(answer.table[0].blocks, ElementsAre(kNoBlock, 0));
  const OperationFailure* found = answer.FailureOf({2, 5});
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->part, AdvancePart::kAhead);
  EXPECT_EQ(found->error.reason, Reason::kPoolExhausted);
  EXPECT_EQ(found->error.Detail("needed"), "3");
  EXPECT_EQ(answer.FailureOf({2, 4}), nullptr);
}

TEST(StatusConvertTest, ReadsReasonAndNumbersFromTheErrorInfo) {
  google::rpc::ErrorInfo info;
  info.set_domain("quire");
  info.set_reason("STEP_OUT_OF_ORDER");
  (*info.mutable_metadata())["expected_step"] = "10";
  google::rpc::Status details;
  details.add_details()->PackFrom(info);
  const absl::Status status = FromGrpc(
      grpc::Status(grpc::StatusCode::ABORTED, "wrong number", details.SerializeAsString()));
  EXPECT_TRUE(HasReason(status));
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(ReasonOf(status), Reason::kStepOutOfOrder);
  EXPECT_EQ(FromStatus(status).Detail("expected_step"), "10");
}

TEST(StatusConvertTest, AnythingElseHasNoReason) {
  EXPECT_TRUE(FromGrpc(grpc::Status::OK).ok());
  const absl::Status plain = FromGrpc(grpc::Status(grpc::StatusCode::UNAVAILABLE, "down"));
  EXPECT_EQ(plain.code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(HasReason(plain));
  google::rpc::ErrorInfo info;
  info.set_domain("other");
  info.set_reason("STEP_OUT_OF_ORDER");
  google::rpc::Status details;
  details.add_details()->PackFrom(info);
  EXPECT_FALSE(HasReason(
      FromGrpc(grpc::Status(grpc::StatusCode::ABORTED, "foreign", details.SerializeAsString()))));
  EXPECT_FALSE(HasReason(FromGrpc(grpc::Status(grpc::StatusCode::INTERNAL, "bytes", "\xFF\xFF"))));
}

}  // namespace
}  // namespace quire::client
