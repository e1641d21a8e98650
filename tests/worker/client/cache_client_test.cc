// The client's steps against a scripted server.
#include "worker/client/cache_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/worker/client/fake_connection.h"

namespace quire::client {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Answers a begin with one block and a copy order, an advance with nothing.
void OneBlockPerBegin(const v1::StepBatch& step, v1::StepAnswer& answer) {
  for (int i = 0; i < step.operations_size(); ++i) {
    if (!step.operations(i).has_begin()) continue;
    const v1::BeginOperation& begin = step.operations(i).begin();
    v1::BeginResult& result = *answer.add_begins();
    result.set_operation(static_cast<uint32_t>(i));
    result.set_length(static_cast<uint32_t>(begin.tokens_size()));
    v1::TableRun& run = *answer.add_table();
    run.set_sequence(begin.sequence());
    run.add_blocks(static_cast<uint32_t>(begin.sequence()));
    v1::CopyOrder& copy = *answer.add_copies();
    copy.set_source(9);
    copy.set_destination(static_cast<uint32_t>(begin.sequence()));
    copy.set_tokens(2);
  }
}

class CacheClientTest : public testing::Test {
 protected:
  CacheClientTest() : server_(std::make_shared<FakeConnection>()) {
    server_->set_script(OneBlockPerBegin);
    options_.worker = "w";
    options_.incarnation = 5;
    options_.step_timeout = std::chrono::milliseconds(200);
    options_.retry_budget = std::chrono::seconds(20);
  }

  std::unique_ptr<CacheClient> Attach() {
    auto client = CacheClient::Attach(options_, server_);
    EXPECT_TRUE(client.ok()) << client.status();
    (*client)->set_copy_executor([this](std::span<const CopyOrder> orders) {
      for (const CopyOrder& order : orders) copied_.push_back(order.destination);
      return absl::OkStatus();
    });
    return *std::move(client);
  }

  static Step BeginStep(SequenceHandle sequence) {
    Step step;
    step.Begin({.sequence = sequence, .tokens = {1, 2, 3}});
    return step;
  }

  std::vector<uint64_t> ReceivedSteps() {
    std::vector<uint64_t> steps;
    for (const v1::StepBatch& batch : server_->received()) steps.push_back(batch.step());
    return steps;
  }

  std::shared_ptr<FakeConnection> server_;
  ClientOptions options_;
  std::vector<BlockIndex> copied_;
};

TEST_F(CacheClientTest, AppliesAnswersWholeAndInOrder) {
  auto client = Attach();
  EXPECT_EQ(*client->Submit(BeginStep(1)), 1u);
  EXPECT_EQ(*client->Submit(BeginStep(2)), 2u);
  EXPECT_EQ(client->in_flight(), 2u);
  EXPECT_EQ(client->tables().size(), 0u);
  EXPECT_EQ(client->Wait()->answer.step, 1u);
  ASSERT_NE(client->tables().Find(1), nullptr);
  EXPECT_EQ(client->tables().Find(2), nullptr);
  EXPECT_THAT(client->tables().Find(1)->tables[0], ElementsAre(1));
  EXPECT_THAT(copied_, ElementsAre(1));
  EXPECT_EQ(client->Wait()->answer.step, 2u);
  EXPECT_THAT(copied_, ElementsAre(1, 2));
  EXPECT_EQ(client->Wait().status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(CacheClientTest, ReportsWhatIsAppliedAndComplete) {
  auto client = Attach();
  ASSERT_TRUE(client->Submit(BeginStep(1)).ok());
  ASSERT_TRUE(client->Submit(BeginStep(2)).ok());
  EXPECT_EQ(client->Complete(1).code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(client->Wait().ok());
  ASSERT_TRUE(client->Complete(1).ok());
  ASSERT_TRUE(client->Submit(BeginStep(3)).ok());
  const auto received = server_->received();
  ASSERT_EQ(received.size(), 3u);
  EXPECT_EQ(received[1].applied_step(), 0u);
  EXPECT_EQ(received[2].applied_step(), 1u);
  EXPECT_EQ(received[2].completed_step(), 1u);
  EXPECT_EQ(received[2].lease_id(), "lease");
  EXPECT_EQ(received[2].epoch(), 7u);
}

TEST_F(CacheClientTest, ReportsCompletionOnceByAnEmptyStep) {
  auto client = Attach();
  EXPECT_FALSE(*client->ReportCompletion());
  ASSERT_TRUE(client->Submit(BeginStep(1)).ok());
  ASSERT_TRUE(client->Wait().ok());
  EXPECT_FALSE(*client->ReportCompletion());  // not complete yet
  ASSERT_TRUE(client->Complete(1).ok());
  EXPECT_TRUE(*client->ReportCompletion());
  ASSERT_TRUE(client->Wait().ok());
  ASSERT_TRUE(client->Complete(2).ok());
  EXPECT_FALSE(*client->ReportCompletion());
  EXPECT_EQ(server_->received().back().operations_size(), 0);
  EXPECT_EQ(server_->received().back().completed_step(), 1u);
}

TEST_F(CacheClientTest, RefusesMoreStepsThanMayBeInFlight) {
  auto client = Attach();
  for (SequenceHandle i = 1; i <= 4; ++i) ASSERT_TRUE(client->Submit(BeginStep(i)).ok());
  EXPECT_FALSE(client->CanSubmit());
  EXPECT_EQ(client->Submit(BeginStep(5)).status().code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(client->Wait().ok());
  EXPECT_TRUE(client->Submit(BeginStep(5)).ok());
}

TEST_F(CacheClientTest, SendsAgainAfterABreakAndCopiesOnce) {
  auto client = Attach();
  ASSERT_TRUE(client->Submit(BeginStep(1)).ok());
  ASSERT_TRUE(client->Wait().ok());
  ASSERT_TRUE(client->Complete(1).ok());
  server_->BreakStreams(1);
  ASSERT_TRUE(client->Submit(BeginStep(2)).ok());
  ASSERT_TRUE(client->Submit(BeginStep(3)).ok());
  EXPECT_EQ(client->Wait()->answer.step, 2u);
  EXPECT_EQ(client->Wait()->answer.step, 3u);
  EXPECT_EQ(server_->executed(), 3);
  EXPECT_THAT(copied_, ElementsAre(1, 2, 3));
  EXPECT_GE(server_->streams(), 2);
}

TEST_F(CacheClientTest, AnAnswerThatNeverComesIsAskedForAgain) {
  auto client = Attach();
  server_->LoseAnswers(2);
  ASSERT_TRUE(client->Submit(BeginStep(1)).ok());
  ASSERT_TRUE(client->Submit(BeginStep(2)).ok());
  EXPECT_EQ(client->Wait()->answer.step, 1u);
  EXPECT_EQ(client->Wait()->answer.step, 2u);
  // Both were sent again, and once more where this machine was slow; executed they were once.
  EXPECT_GE(ReceivedSteps().size(), 4u);
  EXPECT_EQ(server_->executed(), 2);
  EXPECT_THAT(copied_, ElementsAre(1, 2));
}

TEST_F(CacheClientTest, AStepOutOfOrderIsSentAgain) {
  auto client = Attach();
  server_->Refuse({v1::ERROR_REASON_STEP_OUT_OF_ORDER, v1::ERROR_REASON_STEP_OUT_OF_ORDER});
  ASSERT_TRUE(client->Submit(BeginStep(1)).ok());
  ASSERT_TRUE(client->Submit(BeginStep(2)).ok());
  EXPECT_EQ(client->Wait()->answer.step, 1u);
  EXPECT_EQ(client->Wait()->answer.step, 2u);
}

TEST_F(CacheClientTest, ARefusalForGoodStaysUntilReattach) {
  auto client = Attach();
  server_->Refuse({v1::ERROR_REASON_EPOCH_MISMATCH});
  ASSERT_TRUE(client->Submit(BeginStep(1)).ok());
  EXPECT_EQ(ReasonOf(client->Wait().status()), Reason::kEpochMismatch);
  EXPECT_EQ(ReasonOf(client->Submit(BeginStep(2)).status()), Reason::kEpochMismatch);
  EXPECT_FALSE(client->MayLaunch());
  server_->attach().set_epoch(8);
  ASSERT_TRUE(client->Reattach().ok());
  EXPECT_TRUE(client->MayLaunch());
  EXPECT_EQ(client->in_flight(), 0u);
  ASSERT_TRUE(client->Submit(BeginStep(3)).ok());
  ASSERT_TRUE(client->Wait().ok());
  EXPECT_EQ(server_->received().back().step(), 1u);
  EXPECT_EQ(server_->received().back().epoch(), 8u);
  EXPECT_THAT(server_->attaches().back().incarnation(), 6u);
}

TEST_F(CacheClientTest, UnaryCallsAreRepeatedWithTheSameNumber) {
  options_.mode = StepMode::kUnary;
  auto client = Attach();
  server_->BreakStreams(2);
  ASSERT_TRUE(client->Submit(BeginStep(1)).ok());
  EXPECT_EQ(client->Wait()->answer.step, 1u);
  EXPECT_THAT(ReceivedSteps(), ElementsAre(1, 1, 1));
  EXPECT_EQ(server_->executed(), 1);
  EXPECT_EQ(server_->streams(), 0);
}

TEST_F(CacheClientTest, GivesUpWhenTheBudgetIsUsedUp) {
  options_.retry_budget = std::chrono::milliseconds(50);
  auto client = Attach();
  server_->BreakStreams(1000);
  absl::Status status = client->Submit(BeginStep(1)).status();
  while (status.ok()) status = client->Wait().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(HasReason(status));
}

TEST_F(CacheClientTest, AnAnswerThatCannotBelongToItsStepIsAnError) {
  server_->set_script(
      [](const v1::StepBatch&, v1::StepAnswer& answer) { answer.add_table()->set_sequence(77); });
  auto client = Attach();
  Step step;
  step.Finish(1);
  ASSERT_TRUE(client->Submit(std::move(step)).ok());
  EXPECT_EQ(client->Wait().status().code(), absl::StatusCode::kInternal);
}

TEST_F(CacheClientTest, RefusesStepsThatTheTablesCouldNotFollow) {
  auto client = Attach();
  Step step;
  step.Fork(1, 3, {2});
  step.Extend(1, 3, 8);
  EXPECT_EQ(client->Submit(std::move(step)).status().code(), absl::StatusCode::kInvalidArgument);
  Step too_many;
  for (SequenceHandle i = 0; i < 65; ++i) too_many.Finish(i);
  EXPECT_EQ(client->Submit(std::move(too_many)).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(ReceivedSteps(), IsEmpty());
}

TEST_F(CacheClientTest, DetachesOnce) {
  auto client = Attach();
  EXPECT_TRUE(client->Detach().ok());
  EXPECT_FALSE(client->Submit(BeginStep(1)).ok());
  client.reset();
  EXPECT_EQ(server_->detaches(), 1);
}

}  // namespace
}  // namespace quire::client
