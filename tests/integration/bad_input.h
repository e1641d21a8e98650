// Base of the tests of bad input to a real server: a pool in use, and the proof that nothing of it
// changed.
#ifndef QUIRE_TESTS_INTEGRATION_BAD_INPUT_H_
#define QUIRE_TESTS_INTEGRATION_BAD_INPUT_H_

#include <functional>
#include <string>

#include "gtest/gtest.h"
#include "tests/support/grpc_errors.h"
#include "tests/support/test_server.h"

namespace quire::testing {

inline constexpr uint32_t kHuge = 0xFFFFFFFF;

class BadInputTest : public ::testing::Test {
 protected:
  BadInputTest() : worker_(server_) {
    worker_.Begin(1, 6);
    worker_.Commit(1, 6);
    worker_.Begin(2, 3, 100);
    before_ = State();
  }

  // Everything but what time and refused steps may change.
  std::string State() {
    v1::GetPoolResponse pool;
    EXPECT_THAT(server_.Call(server_.admin(), &v1::AdminService::Stub::GetPool,
                             v1::GetPoolRequest(), &pool),
                CallIsOk());
    v1::ListSequencesResponse list;
    EXPECT_THAT(server_.Call(server_.admin(), &v1::AdminService::Stub::ListSequences,
                             v1::ListSequencesRequest(), &list),
                CallIsOk());
    std::string state = pool.pool().DebugString();
    for (const v1::Sequence& sequence : list.sequences()) {
      v1::GetSequenceRequest request;
      request.set_worker(sequence.worker());
      request.set_handle(sequence.handle());
      v1::GetSequenceResponse whole;
      EXPECT_THAT(
          server_.Call(server_.admin(), &v1::AdminService::Stub::GetSequence, request, &whole),
          CallIsOk());
      state += whole.DebugString();
    }
    return state;
  }

  void ExpectUntouched() {
    EXPECT_EQ(State(), before_);
    v1::AuditPoolResponse audit;
    EXPECT_THAT(server_.Call(server_.admin(), &v1::AdminService::Stub::AuditPool,
                             v1::AuditPoolRequest(), &audit),
                CallIsOk());
    EXPECT_EQ(audit.findings_size(), 0) << audit.DebugString();
    EXPECT_GT(audit.blocks_checked(), 0u);
  }

  // The failure of one operation in an answered step.
  v1::ErrorReason FailureOf(const std::function<void(v1::Operation&)>& make) {
    make(*worker_.NewStep().add_operations());
    v1::StepResponse response;
    const grpc::Status status = worker_.Send(&response);
    EXPECT_THAT(status, CallIsOk());
    if (!status.ok() || response.answer().failures_size() != 1) {
      ADD_FAILURE() << "not one failure: " << response.DebugString();
      return v1::ERROR_REASON_UNSPECIFIED;
    }
    EXPECT_NE(response.answer().failures(0).error().message(), "");
    return response.answer().failures(0).error().reason();
  }

  // The same, if one entry of an advance fails.
  v1::ErrorReason FailureOfAdvance(const std::function<void(v1::AdvanceOperation&)>& change) {
    return FailureOf([&](v1::Operation& op) {
      v1::AdvanceOperation& advance = *op.mutable_advance();
      advance.add_sequences(1);
      advance.add_start_lengths(6);
      advance.add_tokens(5);
      change(advance);
    });
  }

  // The status of a refused step; the same number works afterwards.
  grpc::Status RefusalOf(const std::function<void(v1::StepBatch&)>& make) {
    make(worker_.NewStep());
    v1::StepResponse response;
    const grpc::Status status = worker_.Send(&response);
    EXPECT_FALSE(status.ok());
    return status;
  }

  TestServer server_;
  TestWorker worker_;
  std::string before_;
};

}  // namespace quire::testing

#endif  // QUIRE_TESTS_INTEGRATION_BAD_INPUT_H_
