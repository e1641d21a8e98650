// Which block goes, what a use is, and what a pin keeps.
#include <chrono>
#include <map>
#include <vector>

#include "gmock/gmock.h"
#include "tests/conformance/pressure.h"
#include "tests/support/scenario.h"

namespace quire::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr SequenceHandle kA = 1;

PrefixSelector PrefixOf(const Tokens& tokens) {
  return {.model_fingerprint = "model", .namespace_parts = {}, .tokens = tokens};
}

TEST(Eviction, E10_PinsLetGoOfWhatIsTakenOut) {
  FacadeStory story(Pool(16, 8));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 64));
  w.Finish(kA);
  EngineDriver& driver = story.driver();
  const Tokens whole = Text(1, 64);
  const Tokens half = Text(1, 33);
  const auto long_pin = driver.PinPrefix(PrefixOf(whole), "long", seconds(60));
  const auto short_pin = driver.PinPrefix(PrefixOf(half), "short", seconds(60));
  ASSERT_TRUE(long_pin.ok() && short_pin.ok());
  EXPECT_EQ(story.Blocks().free, 4u);
  // Blocks 2 and 3: the short one has none of them.
  EXPECT_EQ(driver.EvictPrefix(PrefixOf(half)).value_or(0), 2u);
  EXPECT_EQ(story.Blocks().free, 6u);
  ASSERT_EQ(driver.ListPins().size(), 2u);
  for (const PinView& pin : driver.ListPins()) EXPECT_EQ(pin.blocks, 2u) << pin.owner;
  EXPECT_EQ(driver.Flush(), 2u);
  EXPECT_EQ(story.Blocks().free, 8u);
  EXPECT_TRUE(driver.ListPins().empty());
  EXPECT_EQ(ReasonOf(driver.UnpinPrefix(long_pin->pin_id)), Reason::kPinNotFound);
  story.ExpectSound();
}

TEST(Eviction, S44_AParentOutlivesItsChild) {
  FacadeStory story(Pool(16, 8));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 32), {.retention = {{0, 16, 10, {}}, {16, 32, 90, {}}}});
  w.Finish(kA);
  for (const uint32_t stranger : {2u, 3u}) {
    w.Prompt(stranger, Text(stranger, 16));
    w.Finish(stranger);
  }
  Pressure pressure(story, w);
  EXPECT_EQ(pressure.EvictOne(), 3);
  EXPECT_EQ(story.Peek(Text(2, 17)), 0u);
  EXPECT_EQ(pressure.EvictOne(), 3);
  EXPECT_EQ(story.Peek(Text(3, 17)), 0u);
  EXPECT_EQ(story.Peek(Text(1, 33)), 32u);
  EXPECT_EQ(pressure.EvictOne(), 9);
  EXPECT_EQ(story.Peek(Text(1, 33)), 16u);
  EXPECT_EQ(pressure.EvictOne(), 1);
  EXPECT_EQ(story.Peek(Text(1, 33)), 0u);
}

TEST(Eviction, S46_ACycleLargerThanThePoolReusesNothing) {
  FacadeStory story(Pool(16, 100));
  Worker& w = story.Attach("w");
  for (uint32_t round = 0; round < 3; ++round) {
    for (uint32_t text = 1; text <= 11; ++text) {
      EXPECT_EQ(w.Prompt(text, Text(text, 160)).reused_tokens, 0u);
      w.Finish(text);
    }
  }
  EXPECT_EQ(story.Blocks().idle, 100u);
}

TEST(Eviction, S47_PeekingIsNoUse) {
  FacadeStory story(Pool(16, 10));
  Worker& w = story.Attach("w");
  for (const uint32_t text : {1u, 2u}) {
    w.Prompt(text, Text(text, 48));
    w.Finish(text);
  }
  const StateOf before = Snapshot(story.driver());
  for (int i = 0; i < 100; ++i) EXPECT_EQ(story.Peek(Text(1, 49)), 48u);
  EXPECT_EQ(Snapshot(story.driver()), before);
  Pressure(story, w).EvictOne();
  EXPECT_EQ(story.Peek(Text(1, 49)), 32u);
  EXPECT_EQ(story.Peek(Text(2, 49)), 48u);
}

PrefixSelector Prefix(const Tokens& tokens) {
  PrefixSelector prefix;
  prefix.model_fingerprint = "model";
  prefix.tokens = tokens;
  return prefix;
}

TEST(Eviction, S48_APinKeepsItsPrefixUntilItsDeadline) {
  FacadeStory story(Pool(16, 10));
  Worker& w = story.Attach("w");
  const Tokens prefix = Text(1, 48);
  w.Prompt(kA, prefix);
  w.Finish(kA);
  const auto pin = story.driver().PinPrefix(Prefix(prefix), "operator", seconds(10));
  ASSERT_TRUE(pin.ok()) << pin.status();
  EXPECT_EQ(pin->pinned_tokens, 48u);

  EXPECT_EQ(w.BeginError(2, Text(2, 128)).reason, Reason::kPoolExhausted);
  w.Begin(2, Text(2, 112));
  w.Finish(2);
  story.Pass(seconds(10) - milliseconds(1));
  EXPECT_EQ(w.BeginError(2, Text(2, 128)).reason, Reason::kPoolExhausted);
  EXPECT_EQ(story.driver().ListPins().size(), 1u);
  story.Pass(milliseconds(1));
  EXPECT_EQ(story.driver().ListPins().size(), 0u);
  w.Begin(2, Text(2, 160));
  EXPECT_EQ(ReasonOf(story.driver().UnpinPrefix(pin->pin_id)), Reason::kPinNotFound) << "expired";
}

TEST(Eviction, S48_UnpinEndsOnlyItsOwnPin) {
  FacadeStory story(Pool(16, 10));
  Worker& w = story.Attach("w");
  const Tokens prefix = Text(1, 48);
  w.Prompt(kA, prefix);
  w.Finish(kA);
  const auto first = story.driver().PinPrefix(Prefix(prefix), "one", seconds(10));
  const auto second = story.driver().PinPrefix(Prefix(prefix), "two", seconds(20));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(ReasonOf(story.driver().UnpinPrefix("no such pin")), Reason::kPinNotFound);
  EXPECT_TRUE(story.driver().UnpinPrefix(first->pin_id).ok());
  EXPECT_EQ(ReasonOf(story.driver().UnpinPrefix(first->pin_id)), Reason::kPinNotFound);
  EXPECT_EQ(w.BeginError(2, Text(2, 128)).reason, Reason::kPoolExhausted) << "the second holds";
  EXPECT_TRUE(story.driver().UnpinPrefix(second->pin_id).ok());
  w.Begin(2, Text(2, 160));
}

}  // namespace
}  // namespace quire::testing
