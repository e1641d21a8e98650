// Bad input at the facade: the documented reason and field, and nothing changed.
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/support/scenario.h"

namespace quire::testing {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr SequenceHandle kA = 1;
constexpr SequenceHandle kB = 2;
constexpr SequenceHandle kNew = 50;
constexpr SequenceHandle kUnknown = 99;

// Two sequences of which one has look-ahead, an idle prefix, a pin; nothing is waiting.
class BadInput : public ::testing::Test {
 protected:
  BadInput() : story_(Options()), w_(story_.Attach("w")) {
    w_.Prompt(kA, Text(1, 20));
    w_.Advance(kA, 101, 3);
    w_.Prompt(kB, Text(2, 16));
    w_.Prompt(3, Text(3, 33));
    w_.Finish(3);
    PrefixSelector prefix;
    prefix.tokens = probes_[2];
    EXPECT_TRUE(story_.driver().PinPrefix(prefix, "operator", seconds(60)).ok());
  }

  static EngineOptions Options() {
    EngineOptions options = Pool(16, 20);
    options.max_sequence_tokens = 256;
    options.max_operations_per_step = 8;
    options.max_sequences_per_worker = 4;
    options.max_pins = 2;
    return options;
  }

  // The operation fails with the reason and, if given, names the field; nothing changes.
  void ExpectFails(const Batch& batch, Reason reason, const std::string& field = {}) {
    const StateOf before = State();
    const StepResult answer = w_.Do(batch);
    const Error error = ErrorOf(answer);
    EXPECT_EQ(error.reason, reason) << ReasonName(error.reason) << ": " << error.message;
    EXPECT_THAT(std::string(error.Detail("field")), HasSubstr(field)) << error.message;
    EXPECT_FALSE(error.message.empty());
    EXPECT_TRUE(answer.runs.empty() && answer.copies.empty());
    w_.Settle();
    EXPECT_EQ(State(), before) << error.message;
    story_.ExpectSound();
  }

  // The whole step is refused and its number stays free; nothing changes.
  void ExpectRefused(const StepParams& params, Reason reason, const std::string& field = {}) {
    const StateOf before = State();
    const auto answer = story_.driver().Step(params);
    const Error error = FromStatus(answer.status());
    EXPECT_EQ(error.reason, reason) << ReasonName(error.reason) << ": " << error.message;
    EXPECT_THAT(std::string(error.Detail("field")), HasSubstr(field)) << error.message;
    EXPECT_EQ(State(), before) << error.message;
    w_.Settle();
    story_.ExpectSound();
  }

  StepParams NextStep(const Batch& batch) { return w_.ParamsFor(batch, w_.last_sent() + 1); }

  StateOf State() { return Snapshot(story_.driver(), probes_); }

  const std::vector<Tokens> probes_ = {Text(1, 21), Text(2, 17), Text(3, 33)};
  FacadeStory story_;
  Worker& w_;
};

TEST_F(BadInput, UnknownLease) {
  const Batch batch = Batch().Finish(kA);
  StepParams params = NextStep(batch);
  params.lease = "no such lease";
  ExpectRefused(params, Reason::kLeaseExpired);
  const Epoch epoch = story_.driver().options().epoch;
  EXPECT_EQ(ReasonOf(story_.driver().Renew({"no such lease", epoch, 0, 0}).status()),
            Reason::kLeaseExpired);
  EXPECT_EQ(ReasonOf(story_.driver().Detach("no such lease", epoch, 0)), Reason::kLeaseExpired);
  EXPECT_EQ(ReasonOf(story_.driver().GetTables("no such lease", epoch, {}).status()),
            Reason::kLeaseExpired);
  story_.driver().BreakStream("no such lease");
}

TEST_F(BadInput, ExpiredLease) {
  Worker& short_lived = story_.Attach("short");
  short_lived.Prompt(kA, Text(9, 3));
  for (int i = 0; i < 3; ++i) {
    story_.Pass(seconds(10));
    w_.Settle();
  }
  story_.Forget(short_lived);
  const Batch batch = Batch().Finish(kA);
  ExpectRefused(short_lived.ParamsFor(batch, short_lived.last_sent() + 1), Reason::kLeaseExpired);
}

TEST_F(BadInput, WrongEpoch) {
  const Batch batch = Batch().Finish(kA);
  StepParams params = NextStep(batch);
  params.epoch += 1;
  ExpectRefused(params, Reason::kEpochMismatch);
}

TEST_F(BadInput, StepNumbersAndCounters) {
  const Batch batch;
  const StepNumber next = w_.last_sent() + 1;
  for (const StepNumber wrong : {next + 1, StepNumber{0}, next - 1 - 20, ~StepNumber{0}}) {
    StepParams params = NextStep(batch);
    params.step = wrong;
    const StateOf before = State();
    const Error error = FromStatus(story_.driver().Step(params).status());
    EXPECT_TRUE(error.reason == Reason::kStepOutOfOrder || error.reason == Reason::kInvalidArgument)
        << wrong << ": " << error.message;
    EXPECT_EQ(State(), before);
  }
  StepParams params = NextStep(batch);
  params.applied_step = params.step;
  ExpectRefused(params, Reason::kInvalidArgument, "applied_step");
  params = NextStep(batch);
  params.completed_step = params.applied_step + 1;
  ExpectRefused(params, Reason::kInvalidArgument, "applied_step");
  params = NextStep(batch);
  params.step = w_.last_sent() + 1;
  params.applied_step = params.step - 9;
  params.completed_step = 0;
  ExpectRefused(params, Reason::kInvalidArgument, "applied_step");
}

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

TEST_F(BadInput, TooManyOperations) {
  Batch many;
  for (int i = 0; i < 9; ++i) many.Finish(kUnknown);
  ExpectRefused(NextStep(many), Reason::kInvalidArgument, "operations");
  const Batch column = Batch().AdvanceEach(std::vector<SequenceHandle>(9, kA),
                                           std::vector<uint32_t>(9, 21), Tokens(9, 1));
  ExpectRefused(NextStep(column), Reason::kInvalidArgument, "operations");
}

TEST_F(BadInput, AMillionOperations) {
  Batch many;
  for (int i = 0; i < 1'000'000; ++i) many.Finish(kA);
  ExpectRefused(NextStep(many), Reason::kInvalidArgument, "operations");
}

TEST_F(BadInput, TooManySequences) {
  w_.Begin(10, Text(10, 1));
  w_.Begin(11, Text(11, 1));
  ExpectFails(Batch().Begin(kNew, Text(5, 4)), Reason::kLimitExceeded);
  ExpectFails(Batch().Fork(kA, 21, {kNew}), Reason::kLimitExceeded);
}

TEST_F(BadInput, Pins) {
  PrefixSelector prefix;
  prefix.tokens = probes_[2];
  PrefixSelector nothing;
  const Tokens unknown = Text(77, 40);
  nothing.tokens = unknown;
  const StateOf before = State();
  EngineDriver& driver = story_.driver();
  EXPECT_EQ(ReasonOf(driver.PinPrefix(nothing, "x", seconds(1)).status()),
            Reason::kInvalidArgument);
  EXPECT_EQ(ReasonOf(driver.PinPrefix(prefix, "", seconds(1)).status()), Reason::kInvalidArgument);
  EXPECT_EQ(ReasonOf(driver.PinPrefix(prefix, std::string(256, 'x'), seconds(1)).status()),
            Reason::kInvalidArgument);
  for (const Duration wrong : {Duration(0), Duration(-1), Duration::min()}) {
    EXPECT_EQ(ReasonOf(driver.PinPrefix(prefix, "x", wrong).status()), Reason::kInvalidArgument);
  }
  EXPECT_EQ(ReasonOf(driver.UnpinPrefix("")), Reason::kPinNotFound);
  EXPECT_EQ(State(), before);
  EXPECT_TRUE(driver.PinPrefix(prefix, "x", seconds(1)).ok());
  EXPECT_EQ(ReasonOf(driver.PinPrefix(prefix, "x", seconds(1)).status()), Reason::kLimitExceeded);
}

TEST_F(BadInput, Attach) {
  const StateOf before = State();
  AttachParams params = AttachAs("");
  EXPECT_EQ(ReasonOf(story_.driver().Attach(params).status()), Reason::kInvalidArgument);
  params = AttachAs(std::string(256, 'x'));
  EXPECT_EQ(ReasonOf(story_.driver().Attach(params).status()), Reason::kInvalidArgument);
  params = AttachAs("x", 1, "");
  EXPECT_EQ(ReasonOf(story_.driver().Attach(params).status()), Reason::kInvalidArgument);
  for (const Duration wrong : {Duration(0), Duration(-1), Duration::min()}) {
    params = AttachAs("x");
    params.lease_duration = wrong;
    EXPECT_EQ(ReasonOf(story_.driver().Attach(params).status()), Reason::kInvalidArgument);
  }
  EXPECT_EQ(State(), before);
}

TEST_F(BadInput, ALeaseIsAtMostTheLongest) {
  AttachParams params = AttachAs("x");
  params.lease_duration = Duration::max();
  const auto attached = story_.driver().Attach(params);
  ASSERT_TRUE(attached.ok()) << attached.status();
  EXPECT_EQ(attached->lease_duration, std::chrono::minutes(10));
}

TEST(BadOptions, EachImpossiblePoolIsRefusedByName) {
  const std::vector<std::pair<std::function<void(EngineOptions&)>, std::string>> cases = {
      {[](EngineOptions& o) { o.block_count = 0; }, "block_count"},
      {[](EngineOptions& o) { o.block_tokens = 0; }, "block_tokens"},
      {[](EngineOptions& o) { o.block_tokens = 24; }, "block_tokens"},
      {[](EngineOptions& o) { o.block_tokens = 2048; }, "block_tokens"},
      {[](EngineOptions& o) { o.groups.clear(); }, "groups"},
      {[](EngineOptions& o) { o.max_sequence_tokens = 161; }, "block_count"},
      {[](EngineOptions& o) { o.max_sequence_tokens = 0; }, "max_sequence_tokens"},
      {[](EngineOptions& o) { o.watermark = -0.1; }, "watermark"},
      {[](EngineOptions& o) { o.watermark = 1.5; }, "watermark"},
      {[](EngineOptions& o) { o.max_steps_in_flight = 0; }, "max_steps_in_flight"}};
  const FakeClock clock;
  for (const auto& [change, field] : cases) {
    EngineOptions options = Pool(16, 10);
    change(options);
    const auto engine = CacheEngine::Create(options, clock);
    const Error error = FromStatus(engine.status());
    EXPECT_EQ(error.reason, Reason::kInvalidArgument) << field;
    EXPECT_THAT(std::string(error.Detail("field")), HasSubstr(field)) << error.message;
  }
}

}  // namespace
}  // namespace quire::testing
