// Base of the tests of bad input: a pool in use, and the proof that nothing of it changed.
#ifndef QUIRE_TESTS_CONFORMANCE_BAD_INPUT_H_
#define QUIRE_TESTS_CONFORMANCE_BAD_INPUT_H_

#include <chrono>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/support/scenario.h"

namespace quire::testing {

// Two sequences of which one has look-ahead, an idle prefix, a pin; nothing is waiting.
class BadInput : public ::testing::Test {
 protected:
  static constexpr SequenceHandle kA = 1;
  static constexpr SequenceHandle kB = 2;
  static constexpr SequenceHandle kNew = 50;
  static constexpr SequenceHandle kUnknown = 99;

  BadInput() : story_(Options()), w_(story_.Attach("w")) {
    w_.Prompt(kA, Text(1, 20));
    w_.Advance(kA, 101, 3);
    w_.Prompt(kB, Text(2, 16));
    w_.Prompt(3, Text(3, 33));
    w_.Finish(3);
    PrefixSelector prefix;
    prefix.tokens = probes_[2];
    EXPECT_TRUE(story_.driver().PinPrefix(prefix, "operator", std::chrono::seconds(60)).ok());
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
    EXPECT_THAT(std::string(error.Detail("field")), ::testing::HasSubstr(field)) << error.message;
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
    EXPECT_THAT(std::string(error.Detail("field")), ::testing::HasSubstr(field)) << error.message;
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

}  // namespace quire::testing

#endif  // QUIRE_TESTS_CONFORMANCE_BAD_INPUT_H_
