// Leases that end, workers that die or hang, lives of the server.
#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/support/fake_mappings.h"
#include "tests/support/scenario.h"

namespace quire::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::SizeIs;

constexpr SequenceHandle kA = 1;
constexpr SequenceHandle kB = 2;

TEST(Leases, S56_ABrokenStreamEndsTheSequencesAfterTheGrace) {
  FacadeStory story(Pool(16, 1000));
  Worker& other = story.Attach("other");
  other.Prompt(kA, Text(1, 55));
  const BlockStateCounts before = story.Blocks();
  const std::vector<SequenceView> sequences = story.driver().ListSequences("");

  Worker& w = story.Attach("w");
  Batch begins;
  Batch commits;
  for (uint32_t s = 1; s <= 200; ++s) {
    begins.Begin(s, Text(1000 + s, 20));
    commits.Commit(s, 20, 20);
  }
  w.Must(begins);
  w.Must(commits);
  w.Settle();
  w.Must(Batch().Begin(999, Text(2, 40)));
  w.Must(Batch().Commit(999, 40, 40));
  EXPECT_EQ(story.driver().Stats().sequences, 202u);

  story.driver().BreakStream(w.lease());
  story.Pass(seconds(5) - milliseconds(1));
  EXPECT_EQ(story.driver().Stats().sequences, 202u) << "within the grace";
  story.Pass(milliseconds(1));
  story.Forget(w);
  EXPECT_EQ(story.driver().ListSequences(""), sequences);
  EXPECT_EQ(story.Peek(Text(1001, 17)), 16u) << "complete";
  EXPECT_EQ(story.Peek(Text(2, 41)), 0u) << "not complete";
  BlockStateCounts after = story.Blocks();
  EXPECT_EQ(after.idle, before.idle + 200);
  EXPECT_EQ(after.free + after.idle, before.free + before.idle);
  after.free = before.free;
  after.idle = before.idle;
  EXPECT_EQ(after, before);
}

TEST(Leases, S56_ACallWithinTheGraceRestoresTheLease) {
  FacadeStory story(Pool(16, 10));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 20));
  story.driver().BreakStream(w.lease());
  story.Pass(seconds(4));
  EXPECT_TRUE(w.Renew().ok());
  story.Pass(seconds(20));
  w.Advance(kA, 101);
}

// A renewal that was overtaken by a step brings counters that are no news: it renews, and nothing
// goes back.
TEST(Leases, RenewalWithOlderCountersIsNoNews) {
  FacadeStory story(Pool(16, 10));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 20));
  const WorkerView before = story.driver().ListWorkers().at(0);
  ASSERT_GT(before.completed_step, 1u);
  const Epoch epoch = story.driver().options().epoch;
  story.Pass(seconds(20));
  for (const auto& [applied, completed] :
       {std::pair{before.applied_step - 1, before.completed_step - 1},
        std::pair{before.applied_step, StepNumber{0}}, std::pair{StepNumber{0}, StepNumber{0}}}) {
    const auto renewed = story.driver().Renew({w.lease(), epoch, applied, completed});
    ASSERT_TRUE(renewed.ok()) << renewed.status();
    EXPECT_EQ(renewed->expected_step, before.last_step + 1);
  }
  const WorkerView after = story.driver().ListWorkers().at(0);
  EXPECT_EQ(after.applied_step, before.applied_step);
  EXPECT_EQ(after.completed_step, before.completed_step);
  EXPECT_EQ(after.lease_remaining, seconds(30));
  // Counters that claim more than was ever sent are a mistake.
  EXPECT_EQ(ReasonOf(story.driver().Renew({w.lease(), epoch, before.last_step + 1, 0}).status()),
            Reason::kInvalidArgument);
  w.Advance(kA, 101);
}

TEST(Leases, S56_ASilentWorkerEndsAtItsDeadline) {
  FacadeStory story(Pool(16, 10));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Text(1, 20));
  story.Pass(seconds(30) - milliseconds(1));
  EXPECT_EQ(story.driver().ListWorkers().size(), 1u);
  story.Pass(milliseconds(1));
  EXPECT_EQ(story.driver().ListWorkers().size(), 0u);
  EXPECT_EQ(w.Send(Batch()).reason, Reason::kLeaseExpired);
  EXPECT_EQ(w.Renew().reason, Reason::kLeaseExpired);
  EXPECT_EQ(story.Held(), 0u);
  story.Forget(w);
}

// An old process with blocks in every part of a write set; returns the blocks it may still write.
std::set<BlockId> HangWithWriteSet(Worker& old) {
  std::set<BlockId> writable;
  old.Prompt(kA, Text(1, 20));
  old.Extend(kA, 40);
  writable.insert(old.Table(kA).begin() + 1, old.Table(kA).end());
  old.Begin(kB, Text(2, 3));
  old.Begin(3, Text(3, 16));
  writable.insert(old.Table(kB)[0]);
  writable.insert(old.Table(3)[0]);
  old.Must(Batch().Finish(kB));
  old.Must(Batch().Commit(3, 16, 16));
  return writable;
}

TEST(Leases, S57_ADisplacedWorkersWriteSetStaysQuarantined) {
  FakeMappings mappings;
  FacadeStory story(Pool(16, 12), {.mappings = &mappings});
  Worker& old = story.Attach("w", 1);
  const std::set<BlockId> writable = HangWithWriteSet(old);
  EXPECT_EQ(writable.size(), 4u);

  Worker& young = story.Attach("w", 2);
  story.Forget(old);
  EXPECT_THAT(story.driver().ListSequences(""), SizeIs(0));
  EXPECT_EQ(old.Send(Batch()).reason, Reason::kLeaseExpired);
  EXPECT_EQ(old.Renew().reason, Reason::kLeaseExpired);
  EXPECT_EQ(story.Blocks().quarantined, 4u);
  EXPECT_EQ(story.Peek(Text(1, 17)), 16u) << "public content stays usable";
  EXPECT_EQ(story.Peek(Text(3, 17)), 0u) << "pending content is dropped";

  young.Begin(kA, Text(5, 8 * 16));
  for (const BlockId block : young.Table(kA)) EXPECT_FALSE(writable.contains(block));
  EXPECT_EQ(young.BeginError(kB, Text(6, 16)).reason, Reason::kPoolExhausted);
  // The old process wakes and writes what it still has mapped; nobody else's bytes change.
  for (const BlockId block : writable) story.memory().Write(block, 0, {666, 0});
  young.ExpectConsistent();

  story.Pass(seconds(9));
  EXPECT_EQ(story.Blocks().quarantined, 4u) << "time alone releases nothing";
  EXPECT_EQ(story.engine().Stats().quarantine_alarms, 0u);
  story.Pass(seconds(2));
  EXPECT_EQ(story.engine().Stats().quarantine_alarms, 4u);
  mappings.End(old.attached().lease_number);
  story.Pass(seconds(2));
  EXPECT_EQ(story.Blocks().quarantined, 0u);
  young.Begin(kB, Text(6, 4 * 16));
}

TEST(Leases, S66_APausedServerLosesNoLease) {
  EngineOptions options = Pool(16, 10);
  options.heartbeat = milliseconds(500);
  FacadeStory story(options);
  Worker& one = story.Attach("one");
  Worker& two = story.Attach("two");
  one.Prompt(kA, Text(1, 20));
  two.Prompt(kA, Text(2, 20));
  story.Pass(seconds(10));
  story.facade().Pause(seconds(40));
  story.Pass(seconds(1));
  EXPECT_TRUE(one.Renew().ok());
  EXPECT_TRUE(two.Renew().ok());
  one.Advance(kA, 101);
  story.Pass(seconds(29));
  EXPECT_TRUE(two.Renew().ok());
  two.Advance(kA, 102);
}

TEST(Restart, S68_AnotherLifeOfTheServerIsAnotherEpoch) {
  EngineOptions options = Pool(16, 10);
  options.epoch = 11;
  FacadeStory before(options);
  Worker& w = before.Attach("w");
  w.Prompt(kA, Text(1, 48));

  options.epoch = 12;
  FacadeStory after(options);
  const Batch batch;
  EXPECT_EQ(ReasonOf(after.driver().Step(w.ParamsFor(batch, 3)).status()), Reason::kEpochMismatch);
  EXPECT_EQ(ReasonOf(after.driver().Renew({w.lease(), 11, 0, 0}).status()), Reason::kEpochMismatch);
  EXPECT_EQ(ReasonOf(after.driver().GetTables(w.lease(), 11, {}).status()), Reason::kEpochMismatch);
  EXPECT_EQ(ReasonOf(after.driver().Detach(w.lease(), 11, 0)), Reason::kEpochMismatch);
  Worker& again = after.Attach("w");
  EXPECT_EQ(again.Prompt(kA, Text(1, 48)).reused_tokens, 0u);
}

TEST(Restart, S74_MemoryOfTheWorkerIsLostWithIt) {
  EngineOptions options = Pool(16, 10);
  options.memory = PoolMemoryKind::kWorker;
  FakeMappings mappings;
  FacadeStory story(options, {.mappings = &mappings});
  Worker& first = story.Attach("w", 1);
  first.Prompt(kA, Text(1, 48));
  first.Finish(kA);
  EXPECT_EQ(first.Prompt(kA, Text(1, 48)).reused_tokens, 47u);
  Worker& second = story.Attach("w", 2);
  story.Forget(first);
  EXPECT_EQ(story.Blocks().quarantined, 0u);
  EXPECT_EQ(story.Blocks().free, 10u);
  EXPECT_EQ(second.Prompt(kA, Text(1, 48)).reused_tokens, 0u);
  // Such a pool belongs to one worker name.
  EXPECT_FALSE(story.driver().Attach(AttachAs("x")).ok());
}

// However long a worker reports nothing complete, the engine knows what it may still write.
TEST(Leases, P11_DeadContentOfAnOldIncompleteStepIsQuarantined) {
  FakeMappings mappings;
  FacadeStory story(PoolOfWindows(4, 3, {0, 4}, 4), {.mappings = &mappings});
  Worker& w = story.Attach("w");
  w.Must(Batch().Begin(kA, Text(1, 4)));
  w.Must(Batch().Commit(kA, 4, 4));
  w.Must(Batch().Finish(kA));
  // Takes the free block and the prompt's full block, without which the other one is dead.
  w.Must(Batch().Begin(kB, Text(2, 1)));
  EXPECT_EQ(story.Blocks().dead, 1u);
  // Releases enough for the worker's log to be compacted.
  for (int step = 0; step < 4; ++step) {
    Batch batch;
    for (int i = 0; i < 1000; ++i) batch.Finish(kB).Begin(kB, Text(2, 1));
    w.Must(batch);
  }
  EXPECT_EQ(story.Blocks().dead, 1u);
  EXPECT_TRUE(story.engine().EndWorker("w").ok());
  story.Forget(w);
  EXPECT_EQ(story.Blocks().quarantined, 3u);
  mappings.End(w.attached().lease_number);
  story.engine().RunMaintenance();
  EXPECT_EQ(story.Blocks().free, 3u);
}

}  // namespace
}  // namespace quire::testing
