// The naive model itself on scenarios, so that the property test compares with something right.
#include "tests/support/naive_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/fake_clock.h"

namespace quire::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;
using Tokens = std::vector<TokenId>;

// Tokens first, first + 1, ... as many as `count`.
Tokens Counting(uint32_t first, uint32_t count) {
  Tokens tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

class NaiveEngineTest : public ::testing::Test {
 protected:
  void Make(uint32_t block_tokens, uint32_t block_count) {
    EngineOptions options;
    options.block_tokens = block_tokens;
    options.block_count = block_count;
    model_.emplace(options, clock_);
    worker_ = model_->Attach("w", "m");
    last_ = 0;
  }

  StepResult Do(const std::vector<Operation>& operations) {
    StepParams params;
    params.step = ++last_;
    params.applied_step = params.completed_step = complete_ ? last_ - 1 : 0;
    params.operations = operations;
    return model_->Predict(worker_, params);
  }

  BeginResult Begin(SequenceHandle handle, const Tokens& tokens) {
    BeginOp begin;
    begin.sequence = handle;
    begin.tokens = tokens;
    const StepResult result = Do({begin});
    EXPECT_THAT(result.begins, SizeIs(1)) << ReasonName(result.failures[0].error.reason);
    return result.begins.empty() ? BeginResult() : result.begins[0];
  }

  // Begins, commits the whole prompt and lets the step complete.
  uint32_t Cache(SequenceHandle handle, const Tokens& tokens) {
    const uint32_t reused = Begin(handle, tokens).reused_tokens;
    const auto length = static_cast<uint32_t>(tokens.size());
    Do({CommitOp{handle, length, length}});
    Do({});
    return reused;
  }

  void Finish(SequenceHandle handle) {
    FinishOp finish;
    finish.sequence = handle;
    Do({finish});
    Do({});
  }

  StepResult Advance(SequenceHandle handle, uint32_t from, const Tokens& tokens,
                     uint32_t ahead = 0) {
    const std::vector<SequenceHandle> handles = {handle};
    const std::vector<uint32_t> starts = {from};
    const std::vector<uint32_t> counts = {static_cast<uint32_t>(tokens.size())};
    AdvanceOp advance;
    advance.sequences = handles;
    advance.start_lengths = starts;
    advance.tokens = tokens;
    advance.token_counts = counts;
    advance.ahead = ahead;
    return Do({advance});
  }

  SequenceView View(SequenceHandle handle) {
    for (const SequenceView& view : model_->Sequences(worker_)) {
      if (view.handle == handle) return view;
    }
    return {};
  }

  FakeClock clock_;
  std::optional<NaiveEngine> model_;
  int worker_ = 0;
  StepNumber last_ = 0;
  bool complete_ = true;
};

TEST_F(NaiveEngineTest, S4_S5_S6_SharersReuseAndStrangersEvict) {
  Make(16, 10);
  Tokens first = Counting(0, 55);
  Tokens second = Counting(0, 53);
  std::fill(second.begin() + 48, second.end(), 900);
  EXPECT_EQ(Cache(1, first), 0u);
  EXPECT_EQ(Cache(2, second), 48u);
  EXPECT_EQ(model_->Counts().free, 5u);
  Finish(1);
  Finish(2);
  EXPECT_EQ(model_->Counts().idle, 3u);
  EXPECT_EQ(model_->Counts().free, 7u);
  EXPECT_EQ(Cache(3, second), 48u);
  Finish(3);
  EXPECT_EQ(Cache(4, Counting(500, 160)), 0u);
  EXPECT_EQ(model_->Counts().free, 0u);
  EXPECT_EQ(model_->Counts().idle, 0u);
}

TEST_F(NaiveEngineTest, S7_FullyCachedPromptCopiesAndIsMergedBack) {
  Make(16, 10);
  Cache(1, Counting(0, 48));
  EXPECT_EQ(Begin(2, Counting(0, 48)).reused_tokens, 47u);
  EXPECT_EQ(model_->Counts().free, 6u);
  Do({CommitOp{2, 48, 48}});
  Do({});
  EXPECT_EQ(View(1).groups, View(2).groups);
  EXPECT_EQ(model_->Counts().free, 7u);
}

TEST_F(NaiveEngineTest, S20_FourWritersThreeCopies) {
  Make(4, 10);
  Cache(1, Counting(0, 6));
  const std::vector<SequenceHandle> children = {2, 3, 4};
  Do({ForkOp{1, 6, children}});
  EXPECT_EQ(model_->Counts().free, 8u);
  for (SequenceHandle handle = 1; handle <= 4; ++handle) Advance(handle, 6, {50});
  EXPECT_EQ(model_->Counts().free, 5u);
}

TEST_F(NaiveEngineTest, S29_S30_ShortageNamesTheNumbers) {
  Make(16, 10);
  Cache(1, Counting(0, 96));
  Finish(1);
  Cache(2, Counting(500, 32));
  BeginOp begin;
  const Tokens tokens = Counting(0, 144);
  begin.sequence = 3;
  begin.tokens = tokens;
  const StepResult refused = Do({begin});
  ASSERT_THAT(refused.failures, SizeIs(1));
  const Error& error = refused.failures[0].error;
  EXPECT_EQ(error.reason, Reason::kPoolExhausted);
  EXPECT_EQ(error.Detail("needed"), "3");
  EXPECT_EQ(error.Detail("free"), "2");
  EXPECT_EQ(error.Detail("evictable"), "0");
  EXPECT_EQ(error.Detail("held_by_caller"), "2");
  Finish(2);
  EXPECT_EQ(Begin(3, tokens).reused_tokens, 96u);
  EXPECT_EQ(model_->Counts().idle, 1u);
}

TEST_F(NaiveEngineTest, S63_PartialCopyThatDoesNotFitIsGivenUp) {
  Make(16, 3);
  Cache(1, Counting(0, 48));
  Finish(1);
  EXPECT_EQ(Begin(2, Counting(0, 48)).reused_tokens, 32u);
}

TEST_F(NaiveEngineTest, S69_LookAheadSealsAndReserves) {
  Make(4, 10);
  Begin(1, Counting(0, 6));
  Do({ExtendOp{1, 6, 9}});
  std::vector<std::pair<uint32_t, uint32_t>> seen;
  for (uint32_t from = 6; from < 10; ++from) {
    Advance(1, from, {from}, 3);
    seen.emplace_back(View(1).committed, View(1).reserved);
  }
  EXPECT_THAT(seen, ElementsAre(std::pair(6u, 10u), std::pair(7u, 11u), std::pair(8u, 12u),
                                std::pair(9u, 13u)));
  EXPECT_THAT(View(1).groups[0].blocks, SizeIs(4));
}

TEST_F(NaiveEngineTest, S71_TokenEntersThoughTheLookAheadIsShort) {
  Make(4, 3);
  Begin(1, Counting(0, 9));
  Do({ExtendOp{1, 9, 12}});
  const StepResult result = Advance(1, 9, {9}, 3);
  ASSERT_THAT(result.failures, SizeIs(1));
  EXPECT_EQ(result.failures[0].part, AdvancePart::kAhead);
  EXPECT_EQ(result.failures[0].reserved, 12u);
  EXPECT_EQ(result.failures[0].error.Detail("needed"), "1");
  EXPECT_EQ(View(1).length, 10u);
  EXPECT_EQ(View(1).committed, 9u);
  EXPECT_THAT(Advance(1, 10, {10}).failures, SizeIs(0));
}

TEST_F(NaiveEngineTest, S72_ForkOfALookAheadCopiesTheTail) {
  Make(4, 10);
  Begin(1, Counting(0, 6));
  Do({ExtendOp{1, 6, 9}});
  const std::vector<SequenceHandle> children = {2};
  Do({ForkOp{1, 6, children}});
  EXPECT_EQ(model_->Counts().free, 6u);
  EXPECT_EQ(View(2).length, 6u);
}

TEST_F(NaiveEngineTest, S73_ChunksEnterByExtend) {
  Make(4, 10);
  BeginOp begin;
  const Tokens tokens = Counting(0, 10);
  begin.sequence = 1;
  begin.tokens = tokens;
  begin.allocate_tokens = 4;
  Do({begin});
  EXPECT_EQ(View(1).length, 4u);
  Do({ExtendOp{1, 4, 8}});
  EXPECT_THAT(View(1).groups[0].blocks, SizeIs(2));
  EXPECT_THAT(Advance(1, 8, {7}).failures, SizeIs(1));
  Do({CommitOp{1, 8, 4}});
  Do({ExtendOp{1, 8, 10}});
  EXPECT_EQ(View(1).length, 10u);
  EXPECT_THAT(View(1).groups[0].blocks, SizeIs(3));
}

TEST_F(NaiveEngineTest, S54_PendingContentIsFoundByItsWorkerOnly) {
  Make(4, 10);
  complete_ = false;
  const Tokens tokens = Counting(0, 9);
  Begin(1, tokens);
  Do({CommitOp{1, 9, 9}});
  PrefixSelector selector;
  selector.model_fingerprint = "m";
  selector.tokens = tokens;
  EXPECT_EQ(model_->Peek(selector), 0u);
  EXPECT_EQ(Begin(2, tokens).reused_tokens, 8u);
  model_->Complete(worker_, 2);
  EXPECT_EQ(model_->Peek(selector), 8u);
}

}  // namespace
}  // namespace quire::testing
