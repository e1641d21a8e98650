// How long a client waits for a server, and what it tells meanwhile.
#include "worker/client/server_wait.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "cache_service/base/error.h"
#include "tests/support/fake_clock.h"
#include "worker/client/types.h"

namespace quire::client {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Kind = ServerNotice::Kind;

class ServerWaitTest : public testing::Test {
 protected:
  // Fails every 100 ms for so long; the last status.
  absl::Status FailFor(Duration time, const absl::Status& cause) {
    absl::Status status = wait_.Failed(cause);
    for (Duration passed{}; passed < time && status.ok(); passed += milliseconds(100)) {
      clock_.Advance(milliseconds(100));
      status = wait_.Failed(cause);
    }
    return status;
  }

  std::vector<Kind> TakeTold() { return std::exchange(told_, {}); }

  const absl::Status away_ = absl::UnavailableError("nobody listens");
  const absl::Status draining_ = ToStatus(MakeError(Reason::kDraining, "the server ends"));
  FakeClock clock_;
  std::vector<Kind> told_;
  ServerWait wait_{seconds(60),
                   [this](const ServerNotice& notice) { told_.push_back(notice.kind); }, clock_};
};

TEST_F(ServerWaitTest, TheFirstAttachSaysAtOnceThatItWaits) {
  EXPECT_TRUE(wait_.Failed(away_).ok());
  EXPECT_THAT(TakeTold(), ElementsAre(Kind::kUnreachable));
  EXPECT_TRUE(FailFor(seconds(11), away_).ok());
  EXPECT_THAT(TakeTold(), ElementsAre(Kind::kUnreachable, Kind::kUnreachable));
  wait_.Attached(absl::OkStatus());
  EXPECT_THAT(TakeTold(), ElementsAre(Kind::kAnswersAgain));
}

TEST_F(ServerWaitTest, AShortBreakIsNotWorthALine) {
  wait_.Attached(absl::OkStatus());
  EXPECT_TRUE(FailFor(milliseconds(100), away_).ok());
  wait_.Answered();
  EXPECT_THAT(TakeTold(), IsEmpty());
}

TEST_F(ServerWaitTest, GivesUpWithTheLastCauseAndNoReason) {
  wait_.Attached(absl::OkStatus());
  EXPECT_TRUE(FailFor(milliseconds(59'900), away_).ok());
  clock_.Advance(milliseconds(100));
  const absl::Status over = wait_.Failed(away_);
  EXPECT_EQ(over.code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(HasReason(over));
  EXPECT_THAT(std::string(over.message()), HasSubstr("60 s: nobody listens"));
}

TEST_F(ServerWaitTest, AnAnswerStartsTheTimeAnew) {
  wait_.Attached(absl::OkStatus());
  EXPECT_TRUE(FailFor(seconds(50), away_).ok());
  wait_.Answered();
  EXPECT_TRUE(FailFor(seconds(50), away_).ok());
}

TEST_F(ServerWaitTest, AServerThatDrainsIsToldOnceUntilItsSuccessorIsThere) {
  wait_.Attached(absl::OkStatus());
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(FailFor(milliseconds(100), draining_).ok());
    wait_.Answered();  // sequences that run go on
  }
  EXPECT_THAT(TakeTold(), ElementsAre(Kind::kDraining));
  EXPECT_TRUE(FailFor(milliseconds(300), away_).ok());
  EXPECT_THAT(TakeTold(), ElementsAre(Kind::kUnreachable));
  wait_.Attached(ToStatus(MakeError(Reason::kEpochMismatch, "restarted")));
  EXPECT_THAT(TakeTold(), ElementsAre(Kind::kAttachedAgain));
}

TEST_F(ServerWaitTest, ADrainWithoutASuccessorEndsTheWaitToo) {
  wait_.Attached(absl::OkStatus());
  const absl::Status over = FailFor(seconds(61), draining_);
  EXPECT_EQ(over.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(over.message()), HasSubstr("drains"));
}

TEST_F(ServerWaitTest, PatienceEndsSoonOnceTheProgramIsToStop) {
  std::atomic<bool> stop = false;
  ServerWait wait(seconds(60), nullptr, clock_, &stop);
  EXPECT_TRUE(wait.Failed(away_).ok());
  clock_.Advance(seconds(30));
  EXPECT_TRUE(wait.Failed(away_).ok());
  stop = true;
  EXPECT_TRUE(wait.Failed(away_).ok());
  clock_.Advance(milliseconds(4'999));
  EXPECT_TRUE(wait.CheckStop(away_).ok());
  clock_.Advance(milliseconds(1));
  for (const absl::Status& over : {wait.Failed(away_), wait.CheckStop(away_)}) {
    EXPECT_EQ(over.code(), absl::StatusCode::kCancelled);
    EXPECT_FALSE(HasReason(over));
    EXPECT_THAT(std::string(over.message()), HasSubstr("nobody listens"));
  }
  wait.Answered();
  EXPECT_TRUE(wait.Failed(away_).ok());
}

}  // namespace
}  // namespace quire::client
