#include "cache_service/rpc/status_convert.h"

#include "gtest/gtest.h"
#include "quire/v1/error_reason.pb.h"
#include "tests/support/grpc_errors.h"

namespace quire {
namespace {

using testing::ErrorInfoOf;
using testing::NumberIn;

// The table of the contract.
const std::pair<Reason, grpc::StatusCode> kTable[] = {
    {Reason::kInvalidArgument, grpc::INVALID_ARGUMENT},
    {Reason::kSequenceExists, grpc::ALREADY_EXISTS},
    {Reason::kLengthMismatch, grpc::FAILED_PRECONDITION},
    {Reason::kNotComputed, grpc::FAILED_PRECONDITION},
    {Reason::kSequenceNotFound, grpc::NOT_FOUND},
    {Reason::kPinNotFound, grpc::NOT_FOUND},
    {Reason::kPoolNotFound, grpc::NOT_FOUND},
    {Reason::kWorkerNotFound, grpc::NOT_FOUND},
    {Reason::kLeaseExpired, grpc::FAILED_PRECONDITION},
    {Reason::kEpochMismatch, grpc::FAILED_PRECONDITION},
    {Reason::kLayoutMismatch, grpc::FAILED_PRECONDITION},
    {Reason::kStaleIncarnation, grpc::FAILED_PRECONDITION},
    {Reason::kWindowLost, grpc::FAILED_PRECONDITION},
    {Reason::kStepOutOfOrder, grpc::ABORTED},
    {Reason::kPoolExhausted, grpc::RESOURCE_EXHAUSTED},
    {Reason::kQuotaExceeded, grpc::RESOURCE_EXHAUSTED},
    {Reason::kLimitExceeded, grpc::RESOURCE_EXHAUSTED},
    {Reason::kDraining, grpc::UNAVAILABLE},
    {Reason::kContentMismatch, grpc::DATA_LOSS},
    {Reason::kUnauthenticated, grpc::UNAUTHENTICATED},
    {Reason::kPermissionDenied, grpc::PERMISSION_DENIED},
    {Reason::kInvariantBroken, grpc::INTERNAL},
};

TEST(StatusConvertTest, EveryReasonHasItsCodeAndName) {
  EXPECT_EQ(std::size(kTable),
            static_cast<size_t>(v1::ErrorReason_descriptor()->value_count() - 1));
  for (const auto& [reason, code] : kTable) {
    const grpc::Status status = ToGrpcStatus(ToStatus(MakeError(reason, "why")));
    EXPECT_EQ(status.error_code(), code) << ReasonName(reason);
    EXPECT_EQ(status.error_message(), "why");
    EXPECT_EQ(ErrorInfoOf(status).domain(), "quire");
    // The wire's names are those of the enum.
    EXPECT_EQ("ERROR_REASON_" + ErrorInfoOf(status).reason(),
              v1::ErrorReason_Name(static_cast<v1::ErrorReason>(reason)));
    EXPECT_LE(ErrorInfoOf(status).reason().size(), 63u);
  }
}

TEST(StatusConvertTest, NumbersAreMetadata) {
  const grpc::Status status = ToGrpcStatus(ToStatus(
      MakeError(Reason::kPoolExhausted, "short", {{"needed", 3}, {"free", 2}, {"who", "w"}})));
  EXPECT_EQ(NumberIn(status, "needed"), "3");
  EXPECT_EQ(NumberIn(status, "free"), "2");
  EXPECT_EQ(NumberIn(status, "who"), "w");
}

TEST(StatusConvertTest, TransportCodesHaveNoReason) {
  const grpc::Status late = ToGrpcStatus(absl::DeadlineExceededError("late"));
  EXPECT_EQ(late.error_code(), grpc::DEADLINE_EXCEEDED);
  EXPECT_EQ(late.error_details(), "");
  EXPECT_EQ(ToGrpcStatus(absl::CancelledError("gone")).error_code(), grpc::CANCELLED);
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
}

TEST(StatusConvertTest, StatusOfUnknownOriginIsABug) {
  const grpc::Status status = ToGrpcStatus(absl::UnknownError("surprise"));
  EXPECT_THAT(status, testing::IsRefused(grpc::INTERNAL, "INVARIANT_BROKEN"));
}

TEST(StatusConvertTest, LongTextsAreCut) {
  const std::string text(100000, 'x');
  const grpc::Status status =
      ToGrpcStatus(ToStatus(MakeError(Reason::kLayoutMismatch, text, {{"layout", text}})));
  EXPECT_LE(status.error_message().size(), 1024u);
  EXPECT_LE(status.error_details().size(), 4096u);
}

TEST(StatusConvertTest, FailedOperationCarriesTheSame) {
  v1::OperationError error;
  FillOperationError(MakeError(Reason::kLengthMismatch, "12, not 11", {{"length", 12}}), &error);
  EXPECT_EQ(error.reason(), v1::ERROR_REASON_LENGTH_MISMATCH);
  EXPECT_EQ(error.message(), "12, not 11");
  ASSERT_EQ(error.numbers_size(), 1);
  EXPECT_EQ(error.numbers(0).name(), "length");
  EXPECT_EQ(error.numbers(0).value(), "12");
}

}  // namespace
}  // namespace quire
