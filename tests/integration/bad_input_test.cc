// Whatever a client sends: the documented error, no trace, and the server lives.
#include "tests/integration/bad_input.h"

namespace quire::testing {
namespace {

TEST_F(BadInputTest, LeaseAndEpoch) {
  EXPECT_THAT(RefusalOf([](v1::StepBatch& step) { step.set_lease_id("0-nobody"); }),
              IsRefused(grpc::FAILED_PRECONDITION, "LEASE_EXPIRED"));
  EXPECT_THAT(RefusalOf([](v1::StepBatch& step) { step.set_lease_id(""); }),
              IsRefused(grpc::FAILED_PRECONDITION, "LEASE_EXPIRED"));
  EXPECT_THAT(RefusalOf([](v1::StepBatch& step) { step.set_epoch(step.epoch() + 1); }),
              IsRefused(grpc::FAILED_PRECONDITION, "EPOCH_MISMATCH"));
  const grpc::Status late = RefusalOf([](v1::StepBatch& step) { step.set_step(step.step() + 5); });
  EXPECT_THAT(late, IsRefused(grpc::ABORTED, "STEP_OUT_OF_ORDER"));
  EXPECT_EQ(NumberIn(late, "expected_step"), "4");
  ExpectUntouched();
}

TEST_F(BadInputTest, SequencesAndLengths) {
  EXPECT_EQ(FailureOf([](v1::Operation& op) { op.mutable_finish()->set_sequence(99); }),
            v1::ERROR_REASON_SEQUENCE_NOT_FOUND);
  EXPECT_EQ(FailureOf([](v1::Operation& op) {
              op.mutable_begin()->set_sequence(1);
              op.mutable_begin()->add_tokens(5);
            }),
            v1::ERROR_REASON_SEQUENCE_EXISTS);
  EXPECT_EQ(FailureOf([](v1::Operation& op) {
              op.mutable_advance()->add_sequences(1);
              op.mutable_advance()->add_start_lengths(5);
              op.mutable_advance()->add_tokens(5);
            }),
            v1::ERROR_REASON_LENGTH_MISMATCH);
  ExpectUntouched();
}

TEST_F(BadInputTest, Prompts) {
  EXPECT_EQ(FailureOf([](v1::Operation& op) { op.mutable_begin()->set_sequence(3); }),
            v1::ERROR_REASON_INVALID_ARGUMENT);
  EXPECT_EQ(FailureOf([](v1::Operation& op) {
              op.mutable_begin()->set_sequence(3);
              op.mutable_begin()->mutable_tokens()->Resize(41, 7);
            }),
            v1::ERROR_REASON_INVALID_ARGUMENT);
  ExpectUntouched();
}

TEST_F(BadInputTest, SlotsAndLengthsOutOfRange) {
  const auto reason = [this](auto make) {
    return FailureOf([make](v1::Operation& op) { make(op); });
  };
  EXPECT_EQ(reason([](v1::Operation& op) {
              op.mutable_truncate()->set_sequence(1);
              op.mutable_truncate()->set_start_length(6);
              op.mutable_truncate()->set_length(7);
            }),
            v1::ERROR_REASON_INVALID_ARGUMENT);
  for (const uint32_t length : {7u, kHuge, 5u}) {
    EXPECT_EQ(reason([length](v1::Operation& op) {
                op.mutable_commit()->set_sequence(1);
                op.mutable_commit()->set_start_length(6);
                op.mutable_commit()->set_committed_length(length);
              }),
              v1::ERROR_REASON_INVALID_ARGUMENT)
        << length;
  }
  ExpectUntouched();
}

// A refused growth makes a waiter and nothing else, so the sequence ends here.
TEST_F(BadInputTest, HugeClaimsAndLookAhead) {
  const auto begin_with = [this](uint32_t tokens, uint32_t sequences) {
    return FailureOf([&](v1::Operation& op) {
      op.mutable_begin()->set_sequence(3);
      op.mutable_begin()->add_tokens(1);
      op.mutable_begin()->set_reserve_tokens(tokens);
      op.mutable_begin()->set_reserve_sequences(sequences);
    });
  };
  EXPECT_EQ(begin_with(kHuge, 1), v1::ERROR_REASON_INVALID_ARGUMENT);
  EXPECT_EQ(begin_with(40, kHuge), v1::ERROR_REASON_INVALID_ARGUMENT);
  EXPECT_EQ(begin_with(40, 65536), v1::ERROR_REASON_POOL_EXHAUSTED);
  EXPECT_EQ(FailureOfAdvance([](v1::AdvanceOperation& advance) {
              advance.mutable_tokens()->Resize(35, 1);
              advance.add_token_counts(35);
            }),
            v1::ERROR_REASON_INVALID_ARGUMENT);
  ExpectUntouched();
}

TEST_F(BadInputTest, HugeExtendTakesNothingAndOnlyWaits) {
  v1::StepBatch& step = worker_.NewStep();
  v1::ExtendOperation* extend = step.add_operations()->mutable_extend();
  extend->set_sequence(1);
  extend->set_start_length(6);
  extend->set_slots(kHuge);
  v1::StepResponse response;
  ASSERT_THAT(worker_.Send(&response), CallIsOk());
  ASSERT_EQ(response.answer().failures_size(), 1);
  EXPECT_EQ(response.answer().failures(0).error().reason(), v1::ERROR_REASON_POOL_EXHAUSTED);
  EXPECT_EQ(response.answer().table_size(), 0);
  // A refused growth waits for its turn until the sequence ends; nothing else is left of it.
  EXPECT_NE(State(), before_);
  worker_.NewStep().add_operations()->mutable_finish()->set_sequence(1);
  worker_.MustSend();
  EXPECT_EQ(State().find("waiters"), std::string::npos);
}

TEST_F(BadInputTest, Ranges) {
  const auto begin_with = [this](auto change) {
    return FailureOf([change](v1::Operation& op) {
      op.mutable_begin()->set_sequence(3);
      op.mutable_begin()->mutable_tokens()->Resize(8, 7);
      change(*op.mutable_begin());
    });
  };
  EXPECT_EQ(begin_with([](v1::BeginOperation& begin) {
              v1::RetentionRange* range = begin.add_retention();
              range->set_start(4);
              range->set_end(2);
              range->set_priority(1);
            }),
            v1::ERROR_REASON_INVALID_ARGUMENT);
  EXPECT_EQ(begin_with([](v1::BeginOperation& begin) { begin.add_retention()->set_priority(101); }),
            v1::ERROR_REASON_INVALID_ARGUMENT);
  EXPECT_EQ(begin_with([](v1::BeginOperation& begin) {
              // Open-ended, and not the last.
              begin.add_retention()->set_priority(1);
              begin.add_retention()->set_priority(2);
            }),
            v1::ERROR_REASON_INVALID_ARGUMENT);
  EXPECT_EQ(begin_with([](v1::BeginOperation& begin) {
              for (int i = 0; i < 2; ++i) {
                begin.add_retention()->set_priority(1);
                begin.mutable_retention(i)->set_start(static_cast<uint32_t>(2 * i));
                begin.mutable_retention(i)->set_end(static_cast<uint32_t>(2 * i + 3));
              }
            }),
            v1::ERROR_REASON_INVALID_ARGUMENT);
  EXPECT_EQ(begin_with([](v1::BeginOperation& begin) {
              v1::RetentionRange* range = begin.add_retention();
              range->set_priority(1);
              range->mutable_duration()->set_seconds(-1);
            }),
            v1::ERROR_REASON_INVALID_ARGUMENT);
  EXPECT_EQ(begin_with([](v1::BeginOperation& begin) {
              v1::DigestRange* range = begin.add_digests();
              range->set_start(6);
              range->set_end(3);
              range->set_digest(std::string(32, 'd'));
            }),
            v1::ERROR_REASON_INVALID_ARGUMENT);
  ExpectUntouched();
}

TEST_F(BadInputTest, MalformedStepsConsumeNoNumber) {
  EXPECT_THAT(RefusalOf([](v1::StepBatch& step) { step.add_operations(); }),
              IsRefused(grpc::INVALID_ARGUMENT, "INVALID_ARGUMENT"));
  const grpc::Status overflow = RefusalOf([](v1::StepBatch& step) {
    v1::AdvanceOperation* advance = step.add_operations()->mutable_advance();
    for (const uint64_t handle : {1u, 2u}) {
      advance->add_sequences(handle);
      advance->add_start_lengths(0);
      advance->add_tokens(1);
      advance->add_token_counts(handle == 1 ? kHuge : 3);
    }
  });
  EXPECT_THAT(overflow, IsRefused(grpc::INVALID_ARGUMENT, "INVALID_ARGUMENT"));
  EXPECT_EQ(NumberIn(overflow, "field"), "operations[0].advance.tokens");
  const grpc::Status many = RefusalOf([](v1::StepBatch& step) {
    for (int i = 0; i < 1'000'000; ++i) step.add_operations()->mutable_finish();
  });
  EXPECT_THAT(many, IsRefused(grpc::INVALID_ARGUMENT, "INVALID_ARGUMENT"));
  EXPECT_EQ(NumberIn(many, "given"), "1000000");
  EXPECT_EQ(NumberIn(many, "limit"), "4096");
  ExpectUntouched();
  worker_.NewStep();
  worker_.MustSend();
}

TEST_F(BadInputTest, UnknownEnumValues) {
  v1::AttachWorkerRequest request;
  request.set_worker("x");
  request.set_model_fingerprint("m");
  request.mutable_layout()->set_dtype(static_cast<v1::Dtype>(77));
  v1::AttachWorkerResponse response;
  auto attach = [&] {
    return server_.Call(server_.cache(), &v1::CacheService::Stub::AttachWorker, request, &response);
  };
  grpc::Status status = attach();
  EXPECT_THAT(status, IsRefused(grpc::INVALID_ARGUMENT, "INVALID_ARGUMENT"));
  EXPECT_EQ(NumberIn(status, "field"), "layout.dtype");
  EXPECT_EQ(NumberIn(status, "given"), "77");
  request.mutable_layout()->Clear();
  request.mutable_layout()->add_groups()->set_kind(static_cast<v1::GroupKind>(9));
  status = attach();
  EXPECT_THAT(status, IsRefused(grpc::INVALID_ARGUMENT, "INVALID_ARGUMENT"));
  EXPECT_EQ(NumberIn(status, "field"), "layout.groups[0].kind");
  ExpectUntouched();
}

TEST_F(BadInputTest, AttachRequests) {
  const auto attach = [this](auto change) {
    v1::AttachWorkerRequest request;
    request.set_worker("x");
    request.set_model_fingerprint("m");
    change(request);
    v1::AttachWorkerResponse response;
    return server_.Call(server_.cache(), &v1::CacheService::Stub::AttachWorker, request, &response);
  };
  const auto invalid = IsRefused(grpc::INVALID_ARGUMENT, "INVALID_ARGUMENT");
  EXPECT_THAT(attach([](auto& request) { request.clear_worker(); }), invalid);
  EXPECT_THAT(attach([](auto& request) { request.set_worker(std::string(256, 'w')); }), invalid);
  EXPECT_THAT(attach([](auto& request) { request.clear_model_fingerprint(); }), invalid);
  EXPECT_THAT(attach([](auto& request) { request.mutable_lease_duration()->set_seconds(0); }),
              invalid);
  EXPECT_THAT(attach([](auto& request) { request.mutable_lease_duration()->set_seconds(-3); }),
              invalid);
  EXPECT_THAT(attach([](auto& request) { request.set_pool("other"); }),
              IsRefused(grpc::NOT_FOUND, "POOL_NOT_FOUND"));
  EXPECT_THAT(attach([](auto& request) { request.set_ranks(2); }),
              IsRefused(grpc::FAILED_PRECONDITION, "LAYOUT_MISMATCH"));
  EXPECT_THAT(attach([](auto& request) {
                request.set_worker("w");
                request.set_incarnation(0);
              }),
              IsRefused(grpc::FAILED_PRECONDITION, "STALE_INCARNATION"));
  ExpectUntouched();
}

TEST_F(BadInputTest, OversizedMessage) {
  v1::StepBatch& step = worker_.NewStep();
  step.add_operations()->mutable_begin()->mutable_tokens()->Resize(5 << 20, 1);
  v1::StepResponse response;
  const grpc::Status status = worker_.Send(&response);
  EXPECT_EQ(status.error_code(), grpc::RESOURCE_EXHAUSTED) << status.error_message();
  ExpectUntouched();
}

TEST_F(BadInputTest, Lists) {
  v1::ListSequencesRequest request;
  v1::ListSequencesResponse response;
  request.set_page_size(1001);
  EXPECT_THAT(
      server_.Call(server_.admin(), &v1::AdminService::Stub::ListSequences, request, &response),
      IsRefused(grpc::INVALID_ARGUMENT, "INVALID_ARGUMENT"));
  request.set_page_size(1);
  request.set_page_token("%%%");
  EXPECT_THAT(
      server_.Call(server_.admin(), &v1::AdminService::Stub::ListSequences, request, &response),
      IsRefused(grpc::INVALID_ARGUMENT, "INVALID_ARGUMENT"));
  v1::GetSequenceRequest which;
  v1::GetSequenceResponse sequence;
  EXPECT_THAT(server_.Call(server_.admin(), &v1::AdminService::Stub::GetSequence, which, &sequence),
              IsRefused(grpc::INVALID_ARGUMENT, "INVALID_ARGUMENT"));
  which.set_worker("w");
  which.set_handle(99);
  EXPECT_THAT(server_.Call(server_.admin(), &v1::AdminService::Stub::GetSequence, which, &sequence),
              IsRefused(grpc::NOT_FOUND, "SEQUENCE_NOT_FOUND"));
  ExpectUntouched();
}

}  // namespace
}  // namespace quire::testing
