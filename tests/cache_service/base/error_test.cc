#include "cache_service/base/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "absl/strings/cord.h"

namespace quire {
namespace {

using ::testing::ElementsAre;

constexpr int kReasonCount = 23;

Reason ReasonNumber(int number) { return static_cast<Reason>(number); }

TEST(ErrorTest, NamesAreUpperSnakeAndDifferent) {
  std::set<std::string_view> names;
  for (int i = 0; i < kReasonCount; ++i) {
    const std::string_view name = ReasonName(ReasonNumber(i));
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_LE(name.size(), 63u);
    EXPECT_EQ(name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_"), std::string_view::npos)
        << name;
  }
}

struct CodeCase {
  Reason reason;
  std::string_view name;
  absl::StatusCode code;
};

class CodeTest : public ::testing::TestWithParam<CodeCase> {};

TEST_P(CodeTest, FollowsFromTheReason) {
  EXPECT_EQ(ReasonName(GetParam().reason), GetParam().name);
  EXPECT_EQ(CodeOf(GetParam().reason), GetParam().code);
}

using Code = absl::StatusCode;
INSTANTIATE_TEST_SUITE_P(
    Table, CodeTest,
    ::testing::Values(
        CodeCase{Reason::kInvalidArgument, "INVALID_ARGUMENT", Code::kInvalidArgument},
        CodeCase{Reason::kSequenceExists, "SEQUENCE_EXISTS", Code::kAlreadyExists},
        CodeCase{Reason::kLengthMismatch, "LENGTH_MISMATCH", Code::kFailedPrecondition},
        CodeCase{Reason::kNotComputed, "NOT_COMPUTED", Code::kFailedPrecondition},
        CodeCase{Reason::kSequenceNotFound, "SEQUENCE_NOT_FOUND", Code::kNotFound},
        CodeCase{Reason::kPinNotFound, "PIN_NOT_FOUND", Code::kNotFound},
        CodeCase{Reason::kLeaseExpired, "LEASE_EXPIRED", Code::kFailedPrecondition},
        CodeCase{Reason::kEpochMismatch, "EPOCH_MISMATCH", Code::kFailedPrecondition},
        CodeCase{Reason::kWindowLost, "WINDOW_LOST", Code::kFailedPrecondition},
        CodeCase{Reason::kStepOutOfOrder, "STEP_OUT_OF_ORDER", Code::kAborted},
        CodeCase{Reason::kPoolExhausted, "POOL_EXHAUSTED", Code::kResourceExhausted},
        CodeCase{Reason::kQuotaExceeded, "QUOTA_EXCEEDED", Code::kResourceExhausted},
        CodeCase{Reason::kLimitExceeded, "LIMIT_EXCEEDED", Code::kResourceExhausted},
        CodeCase{Reason::kDraining, "DRAINING", Code::kUnavailable},
        CodeCase{Reason::kContentMismatch, "CONTENT_MISMATCH", Code::kDataLoss},
        CodeCase{Reason::kInvariantBroken, "INVARIANT_BROKEN", Code::kInternal}),
    [](const ::testing::TestParamInfo<CodeCase>& c) { return std::string(c.param.name); });

TEST(ErrorTest, SurvivesTheWayThroughAStatus) {
  for (int i = 1; i < kReasonCount; ++i) {
    const Error error = MakeError(ReasonNumber(i), "sequence 7 has length 12, not 11",
                                  {{"length", 12}, {"given", 11}, {"worker", "w"}, {"none", ""}});
    const absl::Status status = ToStatus(error);
    EXPECT_EQ(status.code(), CodeOf(error.reason));
    EXPECT_EQ(FromStatus(status), error);
    EXPECT_EQ(ReasonOf(status), error.reason);
  }
}

TEST(ErrorTest, DetailsMayHoldAnyBytes) {
  const std::string any(
      "a\x1f\0"
      "1:b\xff",
      7);
  const Error error = MakeError(Reason::kSequenceExists, "m", {{"worker", any}, {"after", 1}});
  EXPECT_EQ(FromStatus(ToStatus(error)), error);
}

TEST(ErrorTest, OkIsOkBothWays) {
  EXPECT_TRUE(Error().ok());
  EXPECT_TRUE(ToStatus(Error()).ok());
  EXPECT_TRUE(FromStatus(absl::OkStatus()).ok());
  EXPECT_EQ(ReasonOf(absl::OkStatus()), Reason::kNone);
}

TEST(ErrorTest, ForeignStatusIsAnInvariantBroken) {
  const Error error = FromStatus(absl::NotFoundError("from elsewhere"));
  EXPECT_EQ(error.reason, Reason::kInvariantBroken);
  EXPECT_EQ(error.message, "from elsewhere");
  for (const char* payload :
       {"", "x", "4:NONE", "0:", "99:POOL_EXHAUSTED", "-1:", "16LIMIT_EXCEEDED"}) {
    absl::Status status = absl::NotFoundError("damaged");
    status.SetPayload("quire/error", absl::Cord(payload));
    EXPECT_EQ(ReasonOf(status), Reason::kInvariantBroken) << payload;
  }
}

TEST(ErrorTest, InvalidArgumentNamesTheField) {
  const Error error = InvalidArgument("tokens", "empty", {{"limit", uint64_t{1} << 40}});
  EXPECT_EQ(error.reason, Reason::kInvalidArgument);
  EXPECT_EQ(error.message, "tokens: empty");
  EXPECT_THAT(error.details,
              ElementsAre(ErrorDetail("field", "tokens"), ErrorDetail("limit", "1099511627776")));
  EXPECT_EQ(error.Detail("field"), "tokens");
  EXPECT_EQ(error.Detail("absent"), "");
}

}  // namespace
}  // namespace quire
