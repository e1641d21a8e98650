// Bad operations: each fails alone with the documented reason and field, and nothing changed.
#include <string>
#include <vector>

#include "tests/conformance/bad_input.h"

namespace quire::testing {
namespace {

TEST_F(BadInput, UnknownSequence) {
  for (const Batch& batch : {Batch().Advance(kUnknown, 1, {1}), Batch().Extend(kUnknown, 1, 5),
                             Batch().Commit(kUnknown, 1, 1), Batch().Fork(kUnknown, 1, {kNew}),
                             Batch().Truncate(kUnknown, 1, 0), Batch().Finish(kUnknown)}) {
    ExpectFails(batch, Reason::kSequenceNotFound);
  }
  const std::vector<SequenceHandle> handles = {kA, kUnknown};
  EXPECT_EQ(
      ReasonOf(
          story_.driver().GetTables(w_.lease(), story_.driver().options().epoch, handles).status()),
      Reason::kSequenceNotFound);
  EXPECT_EQ(ReasonOf(story_.driver().GetSequence("w", kUnknown).status()),
            Reason::kSequenceNotFound);
  EXPECT_EQ(ReasonOf(story_.driver().GetSequence("nobody", kA).status()), Reason::kWorkerNotFound);
}

TEST_F(BadInput, AForeignHandleIsUnknown) {
  Worker& other = story_.Attach("other");
  const StateOf before = State();
  EXPECT_EQ(ErrorOf(other.Do(Batch().Finish(kA))).reason, Reason::kSequenceNotFound);
  EXPECT_EQ(State(), before);
}

TEST_F(BadInput, DuplicateHandle) {
  ExpectFails(Batch().Begin(kA, Text(5, 4)), Reason::kSequenceExists);
  ExpectFails(Batch().Fork(kA, 21, {kB}), Reason::kSequenceExists);
  ExpectFails(Batch().Fork(kA, 21, {kA}), Reason::kSequenceExists);
  // Which of the two equal children is the duplicate does not matter; neither may exist.
  const StateOf before = State();
  const Error error = ErrorOf(w_.Do(Batch().Fork(kA, 21, {kNew, kNew})));
  EXPECT_TRUE(error.reason == Reason::kSequenceExists || error.reason == Reason::kInvalidArgument);
  w_.Settle();
  EXPECT_EQ(State(), before);
}

TEST_F(BadInput, WrongStartLength) {
  for (const uint32_t wrong : {20u, 22u, 0u, 0xFFFFFFFFu}) {
    for (const Batch& batch : {Batch().Advance(kA, wrong, {1}), Batch().Extend(kA, wrong, 40),
                               Batch().Commit(kA, wrong, 21), Batch().Fork(kA, wrong, {kNew}),
                               Batch().Truncate(kA, wrong, 3)}) {
      ExpectFails(batch, Reason::kLengthMismatch);
    }
  }
}

TEST_F(BadInput, Prompts) {
  ExpectFails(Batch().Begin(kNew, {}), Reason::kInvalidArgument, "tokens");
  ExpectFails(Batch().Begin(kNew, Text(5, 257)), Reason::kInvalidArgument, "tokens");
  ExpectFails(Batch().Begin(kNew, Text(5, 10'000)), Reason::kInvalidArgument, "tokens");
  ExpectFails(Batch().Begin(kNew, Text(5, 4), {.reserve_tokens = 257}), Reason::kInvalidArgument,
              "reserve_tokens");
}

TEST_F(BadInput, NamespacesAndDigests) {
  NamespaceParts huge;
  huge.salt = std::string(1025, 'x');
  ExpectFails(Batch().Begin(kNew, Text(5, 4), {.namespace_parts = huge}), Reason::kInvalidArgument,
              "salt");
  const std::vector<std::vector<DigestRange>> wrong = {{{3, 2, {}}},
                                                       {{2, 2, {}}},
                                                       {{0, 21, {}}},
                                                       {{0, 5, {}}, {4, 8, {}}},
                                                       {{8, 9, {}}, {0, 1, {}}}};
  for (const auto& digests : wrong) {
    ExpectFails(Batch().Begin(kNew, Text(5, 20), {.digests = digests}), Reason::kInvalidArgument,
                "digests");
  }
}

TEST_F(BadInput, AdvanceColumnsThatDoNotFit) {
  ExpectFails(Batch().AdvanceColumns({kA}, {21, 16}, {1}, {}, {}), Reason::kInvalidArgument,
              "advance");
  ExpectFails(Batch().AdvanceColumns({kA}, {}, {1}, {}, {}), Reason::kInvalidArgument, "advance");
  ExpectFails(Batch().AdvanceColumns({kA, kB}, {21, 16}, {1}, {}, {}), Reason::kInvalidArgument,
              "advance");
  ExpectFails(Batch().AdvanceColumns({kA}, {21}, {1, 2}, {}, {}), Reason::kInvalidArgument,
              "advance");
  ExpectFails(Batch().AdvanceColumns({kA}, {21}, {1, 2}, {1}, {}), Reason::kInvalidArgument,
              "advance");
  ExpectFails(Batch().AdvanceColumns({kA, kB}, {21, 16}, {1, 2}, {2}, {}), Reason::kInvalidArgument,
              "advance");
  ExpectFails(Batch().AdvanceColumns({kA, kB}, {21, 16}, {1, 2}, {}, {1}), Reason::kInvalidArgument,
              "advance");
}

TEST_F(BadInput, TokenCountsThatOverflow) {
  // The sum of the counts is 2 modulo 2^32, as many tokens as there are.
  ExpectFails(Batch().AdvanceColumns({kA, kB}, {21, 16}, {1, 2}, {0xFFFFFFFF, 3}, {}),
              Reason::kInvalidArgument, "advance");
  ExpectFails(Batch().AdvanceColumns({kA}, {21}, {}, {0xFFFFFFFF}, {}), Reason::kInvalidArgument,
              "advance");
}

TEST_F(BadInput, GrowthBeyondTheLongestSequence) {
  ExpectFails(Batch().Advance(kA, 21, Text(5, 236)), Reason::kInvalidArgument, "tokens");
  // What stops at the limit is not an error: slots and look-ahead.
  w_.Must(Batch().Extend(kA, 21, 0xFFFFFFFF));
  EXPECT_EQ(w_.View(kA).reserved, 256u);
  w_.Truncate(kA, 21);
  w_.Must(Batch().Advance(kA, 21, {102}, 0xFFFFFFFF));
  EXPECT_EQ(w_.View(kA).reserved, 256u);
}

TEST_F(BadInput, ExtendBelowWhatIsHeldChangesNothing) {
  const StateOf before = State();
  for (const uint32_t slots : {0u, 1u, 21u, 24u}) w_.Must(Batch().Extend(kA, 21, slots));
  w_.Settle();
  EXPECT_EQ(State(), before);
}

TEST_F(BadInput, TruncateBeyondTheLength) {
  ExpectFails(Batch().Truncate(kA, 21, 22), Reason::kInvalidArgument, "length");
  ExpectFails(Batch().Truncate(kA, 21, 0xFFFFFFFF), Reason::kInvalidArgument, "length");
}

TEST_F(BadInput, CommitBeyondTheLengthOrBackwards) {
  ExpectFails(Batch().Commit(kA, 21, 22), Reason::kInvalidArgument, "committed_length");
  ExpectFails(Batch().Commit(kA, 21, 19), Reason::kInvalidArgument, "committed_length");
  ExpectFails(Batch().Commit(kA, 21, 0xFFFFFFFF), Reason::kInvalidArgument, "committed_length");
}

TEST_F(BadInput, CommitOfATokenOfTheSameStep) {
  const StepResult answer = w_.Do(Batch().Advance(kA, 21, {102}).Commit(kA, 22, 22));
  EXPECT_EQ(ErrorOf(answer, 1).reason, Reason::kNotComputed);
  w_.Settle();
  EXPECT_EQ(w_.View(kA).length, 22u);
  EXPECT_EQ(w_.View(kA).committed, 21u);
}

TEST_F(BadInput, ForkWithoutChildren) {
  ExpectFails(Batch().Fork(kA, 21, {}), Reason::kInvalidArgument, "children");
}

TEST_F(BadInput, TooManySequences) {
  w_.Begin(10, Text(10, 1));
  w_.Begin(11, Text(11, 1));
  ExpectFails(Batch().Begin(kNew, Text(5, 4)), Reason::kLimitExceeded);
  ExpectFails(Batch().Fork(kA, 21, {kNew}), Reason::kLimitExceeded);
}

}  // namespace
}  // namespace quire::testing
