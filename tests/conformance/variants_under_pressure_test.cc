// Pending content beside equal content of another worker: what it keeps where it is.
#include <string>

#include "gmock/gmock.h"
#include "tests/support/scenario.h"

namespace quire::testing {
namespace {

constexpr SequenceHandle kA = 1;
constexpr SequenceHandle kB = 2;
constexpr SequenceHandle kC = 3;

// The pending block would stand in for the public one, so what is above both cannot go.
TEST(VariantsUnderPressure, ABlockAboveOwnPendingContentIsNotEvictable) {
  FacadeStory story(Pool(4, 5));
  Worker& w = story.Attach("w");
  Worker& v = story.Attach("v");
  v.Prompt(kA, Text(1, 4));
  v.Must(Batch().Begin(kB, Text(1, 8)));
  v.Must(Batch().Commit(kB, 8, 8));
  w.Must(Batch().Begin(kA, Text(1, 8)));
  EXPECT_EQ(w.Table(kA)[0], v.Table(kB)[0]);
  w.Must(Batch().Commit(kA, 8, 8));
  v.Settle();
  v.Finish(kA);
  v.Finish(kB);
  w.Must(Batch().Finish(kA));
  // Only w may take the first block; the second is open to all, with w's own beside it.
  const Error refused = ErrorOf(w.Do(Batch().Begin(kC, Text(4, 16))));
  EXPECT_EQ(refused.reason, Reason::kPoolExhausted);
  EXPECT_EQ(refused.Detail("free"), "2");
  EXPECT_EQ(refused.Detail("evictable"), "1");
  story.ExpectSound();
  w.Settle();
  w.Begin(kC, Text(4, 16));
}

// It is in use before and after, and what is above it must know.
TEST(VariantsUnderPressure, ContentThatTakesThePlaceOfALostBlockStaysInUse) {
  FacadeStory story(PoolOfWindows(4, 6, {6}, 16));
  Worker& w = story.Attach("w");
  Worker& v = story.Attach("v");
  v.Must(Batch().Begin(kA, Text(1, 12)));
  v.Must(Batch().Commit(kA, 12, 12));
  w.Must(Batch().Begin(kB, Join(Text(1, 4), Text(9, 2))));
  w.Must(Batch().Commit(kB, 6, 6));
  v.Settle();
  v.Finish(kA);
  EXPECT_EQ(story.Peek(Text(1, 5)), 4u);
  // The first block left the window first.
  v.Begin(kC, Text(4, 8));
  EXPECT_EQ(story.Peek(Text(1, 5)), 0u);
  w.Settle();
  EXPECT_EQ(story.Peek(Text(1, 5)), 4u);
  story.ExpectSound();
}

}  // namespace
}  // namespace quire::testing
