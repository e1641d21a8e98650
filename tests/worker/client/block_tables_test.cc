// What answers make of tables, by the rules written at quire.v1.StepAnswer.
#include "worker/client/block_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace quire::client {
namespace {

using testing::ElementsAre;

const TokenId kToken[] = {1};

OperationFailure Failure(OperationId id, AdvancePart part, uint32_t reserved) {
  return {id, part, reserved, MakeError(Reason::kPoolExhausted, "none left")};
}

class BlockTablesTest : public testing::Test {
 protected:
  BlockTablesTest()
      : tables_({.block_tokens = 4, .groups = 2, .max_sequence_tokens = 40, .block_count = 50}) {}

  // Sequence 1 with `given` tokens, of which `length` have slots; blocks from `block` in group 0,
  // from block + 20 in group 1.
  void Begin(uint32_t given, uint32_t length, BlockIndex block, uint32_t reused = 0) {
    Step step;
    step.Begin({.sequence = 1, .tokens = std::vector<TokenId>(given, 1)});
    StepAnswer answer;
    answer.begins = {{0, reused, 0, length}};
    std::vector<BlockIndex> first, second;
    for (uint32_t i = 0; i < (length + 3) / 4; ++i) {
      first.push_back(block + static_cast<BlockIndex>(i));
      second.push_back(block + 20 + static_cast<BlockIndex>(i));
    }
    answer.table = {{1, 0, 0, first}, {1, 1, 0, second}};
    ASSERT_TRUE(tables_.Apply(step, answer).ok());
  }

  const SequenceState& At(SequenceHandle sequence) { return *tables_.Find(sequence); }

  BlockTables tables_;
};

TEST_F(BlockTablesTest, BeginListsTheWholeTable) {
  Begin(9, 6, 3, 5);
  EXPECT_EQ(At(1).committed, 5u);
  EXPECT_EQ(At(1).length, 6u);
  EXPECT_EQ(At(1).reserved, 6u);
  EXPECT_EQ(At(1).given_left, 3u);
  EXPECT_THAT(At(1).tables[0], ElementsAre(3, 4));
  EXPECT_THAT(At(1).tables[1], ElementsAre(23, 24));
}

TEST_F(BlockTablesTest, ExtendEntersGivenTokensThenReserves) {
  Begin(9, 6, 3);
  Step step;
  step.Extend(1, 6, 8);
  ASSERT_TRUE(tables_.Apply(step, {}).ok());
  EXPECT_EQ(At(1).length, 8u);
  EXPECT_EQ(At(1).given_left, 1u);
  Step more;
  more.Extend(1, 8, 12);
  StepAnswer answer;
  answer.table = {{1, 0, 2, {9}}, {1, 1, 2, {29}}};
  ASSERT_TRUE(tables_.Apply(more, answer).ok());
  EXPECT_EQ(At(1).length, 9u);
  EXPECT_EQ(At(1).reserved, 12u);
  EXPECT_THAT(At(1).tables[0], ElementsAre(3, 4, 9));
}

TEST_F(BlockTablesTest, AdvanceCommitsWhatEnteredBeforeTheStep) {
  Begin(6, 6, 3);
  Step step;
  step.Advance(1, 6, kToken, 1);
  step.Advance(1, 7, kToken, 1);
  StepAnswer answer;
  answer.table = {{1, 0, 2, {7}}, {1, 1, 2, {27}}};
  ASSERT_TRUE(tables_.Apply(step, answer).ok());
  EXPECT_EQ(At(1).committed, 6u);
  EXPECT_EQ(At(1).length, 8u);
  EXPECT_EQ(At(1).reserved, 9u);
}

TEST_F(BlockTablesTest, ALaterPartOfAnAdvanceLeavesTheEarlierStanding) {
  Begin(8, 8, 3);
  const auto apply = [&](AdvancePart part, uint32_t reserved) {
    Step step;
    const OperationId id = step.Advance(1, At(1).length, kToken, 3);
    StepAnswer answer;
    answer.failures = {Failure(id, part, reserved)};
    if (part == AdvancePart::kAhead) answer.table = {{1, 0, 2, {7}}, {1, 1, 2, {27}}};
    EXPECT_TRUE(tables_.Apply(step, answer).ok());
  };
  apply(AdvancePart::kCommit, 8);
  EXPECT_EQ(At(1).committed, 0u);
  apply(AdvancePart::kEnter, 8);
  EXPECT_EQ(At(1).committed, 8u);
  EXPECT_EQ(At(1).length, 8u);
  apply(AdvancePart::kAhead, 10);
  EXPECT_EQ(At(1).length, 9u);
  EXPECT_EQ(At(1).reserved, 10u);
}

TEST_F(BlockTablesTest, SlotsEndAtTheLongestSequence) {
  Begin(6, 6, 3);
  Step step;
  step.Advance(1, 6, kToken, 1000);
  ASSERT_TRUE(tables_.Apply(step, {}).ok());
  EXPECT_EQ(At(1).reserved, 40u);
}

TEST_F(BlockTablesTest, AChildBeginsWithTheParentsEntries) {
  Begin(6, 6, 3);
  Step reserve;
  reserve.Extend(1, 6, 12);
  StepAnswer reserved;
  reserved.table = {{1, 0, 2, {9}}, {1, 1, 2, {29}}};
  ASSERT_TRUE(tables_.Apply(reserve, reserved).ok());

  // The fork's commit remaps the parent's first block before the child copies the table; the
  // child's tail is copied at once.
  Step step;
  step.Fork(1, 6, {2, 3});
  step.Extend(2, 6, 7);
  StepAnswer answer;
  answer.forks = {{0, 6}};
  answer.table = {{1, 0, 0, {40}}, {2, 0, 1, {41}}, {2, 1, 1, {42}}};
  ASSERT_TRUE(tables_.Apply(step, answer).ok());
  EXPECT_THAT(At(1).tables[0], ElementsAre(40, 4, 9));
  EXPECT_THAT(At(2).tables[0], ElementsAre(40, 41));
  EXPECT_THAT(At(2).tables[1], ElementsAre(23, 42));
  EXPECT_THAT(At(3).tables[0], ElementsAre(40, 4));
  EXPECT_EQ(At(2).reserved, 7u);
  EXPECT_EQ(At(3).reserved, 6u);
  EXPECT_EQ(At(1).committed, 6u);
}

TEST_F(BlockTablesTest, AParentMayEndInTheStepOfItsFork) {
  Begin(6, 6, 3);
  Step step;
  step.Fork(1, 6, {2});
  step.Finish(1);
  StepAnswer answer;
  answer.forks = {{0, 6}};
  ASSERT_TRUE(tables_.Apply(step, answer).ok());
  EXPECT_EQ(tables_.Find(1), nullptr);
  EXPECT_THAT(At(2).tables[0], ElementsAre(3, 4));
}

TEST_F(BlockTablesTest, TruncateShrinksWithoutARun) {
  Begin(12, 12, 3);
  Step step;
  step.Truncate(1, 12, 5);
  ASSERT_TRUE(tables_.Apply(step, {}).ok());
  EXPECT_EQ(At(1).length, 5u);
  EXPECT_EQ(At(1).reserved, 5u);
  EXPECT_THAT(At(1).tables[0], ElementsAre(3, 4));
}

TEST_F(BlockTablesTest, AWindowExitIsAnEntryWithoutBlock) {
  Begin(12, 12, 3);
  StepAnswer answer;
  answer.table = {{1, 1, 0, {kNoBlock, kNoBlock}}};
  ASSERT_TRUE(tables_.Apply(Step(), answer).ok());
  EXPECT_THAT(At(1).tables[1], ElementsAre(kNoBlock, kNoBlock, 25));
  EXPECT_THAT(At(1).tables[0], ElementsAre(3, 4, 5));
}

TEST_F(BlockTablesTest, FailedOperationsChangeNothing) {
  Begin(6, 6, 3);
  Step step;
  const OperationId begin = step.Begin({.sequence = 5, .tokens = {1}});
  const OperationId fork = step.Fork(1, 6, {6});
  const OperationId truncate = step.Truncate(1, 6, 2);
  StepAnswer answer;
  for (const OperationId id : {begin, fork, truncate}) {
    answer.failures.push_back(Failure(id, AdvancePart::kNone, 6));
  }
  ASSERT_TRUE(tables_.Apply(step, answer).ok());
  EXPECT_EQ(tables_.size(), 1u);
  EXPECT_EQ(At(1).length, 6u);
}

TEST_F(BlockTablesTest, AllOrNothingWithAFailureIsNothingButWhatCompletionChanged) {
  Begin(6, 6, 3);
  Step step;
  step.set_all_or_nothing(true);
  step.Truncate(1, 6, 2);
  const OperationId failed = step.Extend(1, 2, 30);
  StepAnswer answer;
  answer.failures = {Failure(failed, AdvancePart::kNone, 6)};
  ASSERT_TRUE(tables_.Apply(step, answer).ok());
  EXPECT_EQ(At(1).length, 6u);
  EXPECT_THAT(At(1).tables[0], ElementsAre(3, 4));
  answer.table = {{1, 0, 1, {BlockIndex{9}}}};
  ASSERT_TRUE(tables_.Apply(step, answer).ok());
  EXPECT_EQ(At(1).length, 6u);
  EXPECT_THAT(At(1).tables[0], ElementsAre(3, 9));
  EXPECT_THAT(At(1).tables[1], ElementsAre(23, 24));
}

TEST_F(BlockTablesTest, AnswersThatCannotBeAreErrors) {
  Begin(6, 6, 3);
  Step begin;
  begin.Begin({.sequence = 2, .tokens = {1}});
  const auto code = [&](const Step& step, StepAnswer answer) {
    BlockTables copy = tables_;
    return copy.Apply(step, answer).code();
  };
  StepAnswer no_result;
  EXPECT_EQ(code(begin, no_result), absl::StatusCode::kInternal);
  StepAnswer too_long;
  too_long.begins = {{0, 0, 0, 2}};
  EXPECT_EQ(code(begin, too_long), absl::StatusCode::kInternal);
  StepAnswer other_group;
  other_group.table = {{1, 2, 0, {1}}};
  EXPECT_EQ(code(Step(), other_group), absl::StatusCode::kInternal);
  StepAnswer no_such_block;
  no_such_block.table = {{1, 0, 0, {50}}};
  EXPECT_EQ(code(Step(), no_such_block), absl::StatusCode::kInternal);
  StepAnswer far_away;
  far_away.table = {{1, 0, 0xFFFFFFFFu, {1}}};
  EXPECT_EQ(code(Step(), far_away), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace quire::client
