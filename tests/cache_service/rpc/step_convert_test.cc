#include "cache_service/rpc/step_convert.h"

#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace quire {
namespace {

using testing::HasReason;
using testing::IsInvalid;
using testing::IsOk;

constexpr uint32_t kLimit = 4096;

class StepDecoderTest : public ::testing::Test {
 protected:
  v1::AdvanceOperation* Advance(int entries) {
    auto* advance = batch_.add_operations()->mutable_advance();
    for (int i = 0; i < entries; ++i) {
      advance->add_sequences(static_cast<uint64_t>(i));
      advance->add_start_lengths(4);
      advance->add_tokens(9);
    }
    return advance;
  }

  absl::Status Decode() { return decoder_.Decode(batch_, caller_, kLimit); }

  v1::StepBatch batch_;
  Caller caller_;
  StepDecoder decoder_;
};

TEST_F(StepDecoderTest, ColumnsAreReadInPlace) {
  const auto* advance = Advance(3);
  ASSERT_THAT(Decode(), IsOk());
  const auto& op = std::get<AdvanceOp>(decoder_.operations()[0]);
  EXPECT_EQ(op.sequences.data(), advance->sequences().data());
  EXPECT_EQ(op.tokens.data(), advance->tokens().data());
  EXPECT_EQ(op.start_lengths.size(), 3u);
  EXPECT_TRUE(op.token_counts.empty());
}

TEST_F(StepDecoderTest, BeginKeepsWhatIsOptional) {
  auto* begin = batch_.add_operations()->mutable_begin();
  begin->set_sequence(3);
  begin->add_tokens(1);
  ASSERT_THAT(Decode(), IsOk());
  EXPECT_FALSE(std::get<BeginOp>(decoder_.operations()[0]).allocate_tokens.has_value());
  begin->set_allocate_tokens(0);
  begin->set_reserve_tokens(8);
  begin->set_reserve_sequences(2);
  begin->set_recompute_tail(1);
  begin->set_skip_cache_read(true);
  ASSERT_THAT(Decode(), IsOk());
  const auto& op = std::get<BeginOp>(decoder_.operations()[0]);
  EXPECT_EQ(op.allocate_tokens, 0u);
  EXPECT_EQ(op.reserve_tokens, 8u);
  EXPECT_EQ(op.reserve_sequences, 2u);
  EXPECT_EQ(op.recompute_tail, 1u);
  EXPECT_TRUE(op.skip_cache_read);
}

TEST_F(StepDecoderTest, EveryKindOfOperationArrives) {
  batch_.add_operations()->mutable_begin()->set_sequence(1);
  Advance(1);
  auto* extend = batch_.add_operations()->mutable_extend();
  extend->set_sequence(2);
  extend->set_start_length(3);
  extend->set_slots(4);
  auto* commit = batch_.add_operations()->mutable_commit();
  commit->set_start_length(5);
  commit->set_committed_length(6);
  batch_.add_operations()->mutable_fork()->add_children(7);
  batch_.add_operations()->mutable_truncate()->set_length(8);
  batch_.add_operations()->mutable_finish()->set_drop(true);
  ASSERT_THAT(Decode(), IsOk());
  const auto& ops = decoder_.operations();
  ASSERT_EQ(ops.size(), 7u);
  for (size_t i = 0; i < ops.size(); ++i) EXPECT_EQ(ops[i].index(), i);
  EXPECT_EQ(std::get<ExtendOp>(ops[2]).slots, 4u);
  EXPECT_EQ(std::get<CommitOp>(ops[3]).committed_length, 6u);
  EXPECT_EQ(std::get<ForkOp>(ops[4]).children[0], 7u);
  EXPECT_EQ(std::get<TruncateOp>(ops[5]).length, 8u);
  EXPECT_TRUE(std::get<FinishOp>(ops[6]).drop);
}

TEST_F(StepDecoderTest, OperationWithoutContentIsMalformed) {
  batch_.add_operations();
  EXPECT_THAT(Decode(), IsInvalid("operations[0]"));
}

TEST_F(StepDecoderTest, ColumnsOfDifferentLengthAreMalformed) {
  Advance(2)->add_start_lengths(1);
  EXPECT_THAT(Decode(), IsInvalid("operations[0].advance.start_lengths"));
  batch_.Clear();
  Advance(2)->add_token_counts(1);
  EXPECT_THAT(Decode(), IsInvalid("operations[0].advance.token_counts"));
  batch_.Clear();
  Advance(2)->add_aheads(1);
  EXPECT_THAT(Decode(), IsInvalid("operations[0].advance.aheads"));
  batch_.Clear();
  Advance(2)->add_tokens(1);
  EXPECT_THAT(Decode(), IsInvalid("operations[0].advance.tokens"));
}

TEST_F(StepDecoderTest, TokenCountsThatOverflow32BitsAreMalformed) {
  auto* advance = Advance(2);
  advance->add_token_counts(0xFFFFFFFF);
  advance->add_token_counts(3);
  // The sum is 2 in 32 bits.
  EXPECT_THAT(Decode(), IsInvalid("operations[0].advance.tokens"));
}

TEST_F(StepDecoderTest, OperationsAndColumnEntriesShareOneLimit) {
  Advance(kLimit - 1);
  batch_.add_operations()->mutable_finish();
  EXPECT_THAT(Decode(), IsOk());
  batch_.add_operations()->mutable_finish();
  EXPECT_THAT(Decode(), IsInvalid("operations"));
}

TEST_F(StepDecoderTest, MillionOperationsAreRefusedUnread) {
  for (int i = 0; i < 1'000'000; ++i) batch_.add_operations();
  EXPECT_THAT(Decode(), IsInvalid("operations"));
  EXPECT_TRUE(decoder_.operations().empty());
}

TEST_F(StepDecoderTest, ForeignTenantIsRefused) {
  caller_.tenant = "acme";
  batch_.add_operations()->mutable_begin()->mutable_namespace_()->set_tenant("other");
  EXPECT_THAT(Decode(), HasReason(Reason::kPermissionDenied));
}

TEST_F(StepDecoderTest, NothingIsLeftOfTheBatchBefore) {
  Advance(2);
  ASSERT_THAT(Decode(), IsOk());
  batch_.Clear();
  ASSERT_THAT(Decode(), IsOk());
  EXPECT_TRUE(decoder_.operations().empty());
}

TEST(StepAnswerTest, EverythingIsInTheMessage) {
  StepResult result;
  result.step = 9;
  result.runs = {{.sequence = 1, .group = 0, .first_index = 2, .first_block = 0, .count = 2},
                 {.sequence = 2, .group = 1, .first_index = 0, .first_block = 2, .count = 1}};
  result.blocks = {BlockId{4}, BlockId{5}, kNoBlock};
  result.copies = {{.group = 1, .source = BlockId{0}, .destination = BlockId{6}, .tokens = 3}};
  result.begins = {{.operation = 0, .reused_tokens = 47, .copied_tokens = 15, .length = 48}};
  result.forks = {{.operation = 1, .length = 6}};
  result.failures = {{.operation = 2,
                      .entry = 1,
                      .part = AdvancePart::kAhead,
                      .reserved = 12,
                      .error = MakeError(Reason::kPoolExhausted, "short", {{"needed", 1}})}};
  result.notices = {{.sequence = 3, .error = MakeError(Reason::kContentMismatch, "bad")}};
  result.pool = {.free = 1, .evictable = 2, .fenced = 3};
  v1::StepAnswer answer;
  FillAnswer(result, &answer);
  EXPECT_EQ(answer.step(), 9u);
  ASSERT_EQ(answer.table_size(), 2);
  EXPECT_EQ(answer.table(0).first_index(), 2u);
  EXPECT_EQ(answer.table(0).blocks(1), 5u);
  EXPECT_EQ(answer.table(1).blocks(0), 0xFFFFFFFFu);
  EXPECT_EQ(answer.copies(0).source(), 0u);
  EXPECT_EQ(answer.copies(0).destination(), 6u);
  EXPECT_EQ(answer.begins(0).reused_tokens(), 47u);
  EXPECT_EQ(answer.begins(0).copied_tokens(), 15u);
  EXPECT_EQ(answer.forks(0).length(), 6u);
  EXPECT_EQ(answer.failures(0).part(), v1::ADVANCE_PART_AHEAD);
  EXPECT_EQ(answer.failures(0).reserved(), 12u);
  EXPECT_EQ(answer.failures(0).error().reason(), v1::ERROR_REASON_POOL_EXHAUSTED);
  EXPECT_EQ(answer.notices(0).error().reason(), v1::ERROR_REASON_CONTENT_MISMATCH);
  EXPECT_EQ(answer.pool().fenced(), 3u);
}

TEST(StepAnswerTest, EqualResultsAreEqualBytes) {
  StepResult result;
  result.step = 1;
  result.failures = {
      {.operation = 0,
       .error = MakeError(Reason::kPoolExhausted, "short", {{"needed", 1}, {"free", 0}})}};
  v1::StepAnswer first, second;
  FillAnswer(result, &first);
  FillAnswer(result, &second);
  EXPECT_EQ(first.SerializeAsString(), second.SerializeAsString());
}

}  // namespace
}  // namespace quire
