#include "worker/runtime/request_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace quire::runtime {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

constexpr uint32_t kVocabulary = 5;

// Logits that prefer `token`, then the ones after it.
std::vector<float> Prefer(TokenId token) {
  std::vector<float> logits(kVocabulary);
  for (uint32_t i = 0; i < kVocabulary; ++i) {
    logits[(token + i) % kVocabulary] = -static_cast<float>(i);
  }
  return logits;
}

Request MakeRequest(Search search, uint32_t width, uint32_t new_tokens) {
  Request request;
  request.prompt = {1, 2, 3};
  request.search = search;
  request.width = width;
  request.new_tokens = new_tokens;
  return request;
}

TEST(RequestRunTest, GeneratesUntilEnough) {
  RequestRun run(MakeRequest(Search::kSamples, 1, 2), TimePoint{}, /*record_logits=*/true);
  Branch& branch = *run.branches()[0];
  branch.state = BranchState::kActive;
  run.OnLogits(branch, Prefer(4), TimePoint{});
  EXPECT_THAT(branch.tokens, ElementsAre(1, 2, 3, 4));
  EXPECT_FALSE(run.done());
  run.OnLogits(branch, Prefer(0), TimePoint{});
  EXPECT_TRUE(run.done());
  run.OnLogits(branch, Prefer(1), TimePoint{});  // a draft's row that nobody needs
  const RequestResult result = run.TakeResult(TimePoint{});
  EXPECT_THAT(result.outputs[0].tokens, ElementsAre(4, 0));
  EXPECT_THAT(result.outputs[0].logits, SizeIs(2 * kVocabulary));
}

TEST(RequestRunTest, SamplesForkFromThePromptOnce) {
  Request request = MakeRequest(Search::kSamples, 3, 4);
  request.sampling = {.temperature = 5, .seed = 2};
  RequestRun run(request, TimePoint{}, false);
  Branch& branch = *run.branches()[0];
  branch.state = BranchState::kActive;
  run.OnLogits(branch, Prefer(0), TimePoint{});
  ASSERT_THAT(run.branches(), SizeIs(3));
  for (uint32_t i = 1; i < 3; ++i) {
    const Branch& child = *run.branches()[i];
    EXPECT_EQ(child.state, BranchState::kForking);
    EXPECT_EQ(child.parent, &branch);
    EXPECT_EQ(child.sample, i);
    ASSERT_THAT(child.tokens, SizeIs(4));
    EXPECT_EQ(child.tokens[3], Sample(Prefer(0), request.sampling, {i, 3}));
  }
  run.OnLogits(branch, Prefer(0), TimePoint{});
  EXPECT_THAT(run.branches(), SizeIs(3));
}

TEST(RequestRunTest, BeamsWaitForEachOtherThenSplitAndDrop) {
  RequestRun run(MakeRequest(Search::kBeam, 2, 3), TimePoint{}, false);
  run.branches()[0]->state = BranchState::kActive;
  run.OnLogits(*run.branches()[0], Prefer(0), TimePoint{});
  ASSERT_THAT(run.branches(), SizeIs(2));
  Branch& best = *run.branches()[0];
  Branch& second = *run.branches()[1];
  EXPECT_EQ(best.tokens.back(), 0u);
  EXPECT_EQ(second.tokens.back(), 1u);
  second.state = BranchState::kActive;

  run.OnLogits(best, Prefer(2), TimePoint{});
  EXPECT_THAT(best.tokens, SizeIs(4));  // waits for the second
  // A flat second beam is worse than both continuations of the best.
  run.OnLogits(second, std::vector<float>(kVocabulary, 0.0f), TimePoint{});
  ASSERT_THAT(run.branches(), SizeIs(3));
  EXPECT_EQ(second.state, BranchState::kDone);
  EXPECT_THAT(best.tokens, ElementsAre(1, 2, 3, 0, 2));
  Branch& fork = *run.branches()[2];
  EXPECT_EQ(fork.parent, &best);
  EXPECT_THAT(fork.tokens, ElementsAre(1, 2, 3, 0, 3));

  fork.state = BranchState::kActive;
  run.OnLogits(best, Prefer(0), TimePoint{});
  run.OnLogits(fork, Prefer(0), TimePoint{});
  EXPECT_TRUE(run.done());
  const RequestResult result = run.TakeResult(TimePoint{});
  ASSERT_THAT(result.outputs, SizeIs(2));
  EXPECT_GE(result.outputs[0].score, result.outputs[1].score);
  EXPECT_THAT(result.rounds, SizeIs(3));
}

TEST(RequestRunTest, APreemptedBeamGivesItsLogitsAgain) {
  RequestRun run(MakeRequest(Search::kBeam, 2, 2), TimePoint{}, false);
  run.branches()[0]->state = BranchState::kActive;
  run.OnLogits(*run.branches()[0], Prefer(0), TimePoint{});
  Branch& best = *run.branches()[0];
  Branch& second = *run.branches()[1];
  second.state = BranchState::kActive;
  run.OnLogits(best, Prefer(0), TimePoint{});
  run.OnPreempted(best);
  run.OnLogits(second, Prefer(0), TimePoint{});
  EXPECT_FALSE(run.done());
  run.OnLogits(best, Prefer(0), TimePoint{});
  EXPECT_TRUE(run.done());
}

TEST(RequestRunTest, OnlyTheFirstBeginCountsAsReuse) {
  RequestRun run(MakeRequest(Search::kSamples, 1, 1), TimePoint{}, false);
  run.NoteReuse(16);
  run.NoteReuse(48);
  const RequestResult result = run.Abandon(absl::AbortedError("enough"), TimePoint{});
  EXPECT_EQ(result.reused_tokens, 16u);
  EXPECT_EQ(result.status.code(), absl::StatusCode::kAborted);
}

}  // namespace
}  // namespace quire::runtime
