// Bad leases, counters, limits, pins, attaches and options: the documented reason and field, and
// nothing changed.
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "tests/conformance/bad_input.h"

namespace quire::testing {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

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
