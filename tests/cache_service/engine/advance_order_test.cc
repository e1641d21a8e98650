// Sequences of an advance are found by the order of the one before: it must never name another one
// than the map of handles would.
#include "cache_service/engine/advance_order.h"

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "cache_service/engine/cache_engine.h"
#include "cache_service/engine/sequence_store.h"
#include "gtest/gtest.h"
#include "tests/support/fake_clock.h"

namespace quire {
namespace {

using Handles = std::vector<SequenceHandle>;

class AdvanceOrderTest : public ::testing::Test {
 protected:
  static constexpr WorkerSlot kWorker = 3;

  Sequence* Add(SequenceHandle handle) {
    SequenceStore::Owned owned = store_.New();
    owned->handle = handle;
    owned->worker = kWorker;
    return (known_[handle] = std::move(owned)).get();
  }

  // Expects what the map says; returns how often it was asked.
  int LookUp(const Handles& handles, bool new_step = true) {
    step_ += new_step ? 1 : 0;
    order_.Start(step_);
    int asked = 0;
    const auto found = order_.LookUp(handles, kWorker, [&](SequenceHandle handle) {
      ++asked;
      return InMap(handle);
    });
    EXPECT_EQ(found.size(), handles.size());
    for (size_t i = 0; i < handles.size(); ++i) EXPECT_EQ(found[i], InMap(handles[i])) << i;
    return asked;
  }

  Sequence* InMap(SequenceHandle handle) {
    const auto found = known_.find(handle);
    return found == known_.end() ? nullptr : found->second.get();
  }

  SequenceStore store_;
  absl::flat_hash_map<SequenceHandle, SequenceStore::Owned> known_;
  AdvanceOrder order_;
  StepNumber step_ = 0;
};

TEST_F(AdvanceOrderTest, TheSameColumnsAgainAreKnown) {
  for (SequenceHandle handle = 1; handle <= 100; ++handle) Add(handle);
  Handles handles;
  for (SequenceHandle handle = 1; handle <= 100; ++handle) handles.push_back(handle);
  EXPECT_EQ(LookUp(handles), 100);
  EXPECT_EQ(LookUp(handles), 0);
  // In two advances of one step.
  EXPECT_EQ(LookUp(Handles(handles.begin(), handles.begin() + 40)), 0);
  EXPECT_EQ(LookUp(Handles(handles.begin() + 40, handles.end()), false), 0);
  EXPECT_EQ(LookUp(handles), 0);
}

TEST_F(AdvanceOrderTest, OneLeftOutAndOnesAddedCostNoMoreThanThemselves) {
  for (SequenceHandle handle = 1; handle <= 9; ++handle) Add(handle);
  LookUp({1, 2, 3, 4, 5, 6});
  EXPECT_EQ(LookUp({1, 2, 4, 5, 6}), 0);
  EXPECT_EQ(LookUp({1, 7, 8, 2, 4, 5, 6, 9}), 3);
  EXPECT_EQ(LookUp({1, 7, 8, 2, 4, 5, 6, 9}), 0);
}

TEST_F(AdvanceOrderTest, OnesThatEndedAreNotFound) {
  for (SequenceHandle handle = 1; handle <= 4; ++handle) Add(handle);
  LookUp({1, 2, 3, 4});
  known_.erase(2);
  EXPECT_EQ(LookUp({1, 2, 3, 4}), 1);
  // Once more, now that a null is in the order.
  LookUp({1, 2, 3, 4});
}

TEST_F(AdvanceOrderTest, MemoryUsedAgainIsNotTakenForTheSame) {
  for (SequenceHandle handle = 1; handle <= 3; ++handle) Add(handle);
  LookUp({1, 2, 3});
  const Sequence* const before = InMap(2);
  known_.erase(2);
  ASSERT_EQ(Add(7), before);
  EXPECT_EQ(LookUp({1, 2, 3}), 1);
  known_.erase(7);
  LookUp({1, 2, 3});
}

TEST_F(AdvanceOrderTest, AnotherWorkersHandleIsNotTakenForTheSame) {
  for (SequenceHandle handle = 1; handle <= 3; ++handle) Add(handle);
  LookUp({1, 2, 3});
  const Sequence* const before = InMap(2);
  known_.erase(2);
  SequenceStore::Owned foreign = store_.New();
  foreign->handle = 2;
  foreign->worker = kWorker + 1;
  ASSERT_EQ(foreign.get(), before);
  EXPECT_EQ(LookUp({1, 2, 3}), 1);
}

TEST_F(AdvanceOrderTest, HandlesNamedTwiceAndOutOfOrder) {
  for (SequenceHandle handle = 1; handle <= 4; ++handle) Add(handle);
  LookUp({1, 1, 2, 3, 3, 4});
  LookUp({4, 3, 2, 1, 1});
  LookUp({1, 1, 1, 9, 4});
  known_.erase(1);
  LookUp({1, 1, 1, 9, 4});
  LookUp({});
  LookUp({4, 3});
}

// A step that may be undone keeps its ended sequences until it is done.
TEST(AllOrNothingTest, AnEndedSequenceIsGoneForTheRestOfTheStep) {
  FakeClock clock;
  EngineOptions options;
  options.block_count = 200;
  options.max_sequence_tokens = 64;
  const auto engine = *CacheEngine::Create(options, clock);
  const LeaseId lease =
      engine->Attach({.worker = "w", .incarnation = 1, .model_fingerprint = "m", .lock_step = true})
          ->lease;
  const Handles handles = {5};
  const std::vector<TokenId> tokens = {8};
  StepNumber step = 0;
  const auto run = [&](const std::vector<Operation>& operations) {
    return *engine->Step({.lease = lease,
                          .epoch = 1,
                          .step = ++step,
                          .all_or_nothing = true,
                          .operations = operations});
  };
  std::vector<uint32_t> start = {20};
  AdvanceOp advance;
  advance.sequences = handles;
  advance.start_lengths = start;
  advance.tokens = tokens;
  BeginOp begin;
  begin.sequence = 5;
  const std::vector<TokenId> prompt(20, 7);
  begin.tokens = prompt;
  ASSERT_TRUE(run({begin, advance})->failures.empty());
  start = {21};
  const auto refused = run({FinishOp{5, false, {}}, advance});
  ASSERT_EQ(refused->failures.size(), 1u);
  EXPECT_EQ(refused->failures[0].error.reason, Reason::kSequenceNotFound);
  EXPECT_TRUE(run({advance})->failures.empty());
  // Under the same handle another one.
  start = {20};
  EXPECT_TRUE(run({FinishOp{5, false, {}}, begin, advance})->failures.empty());
  EXPECT_TRUE(engine->Audit(false).findings.empty());
}

}  // namespace
}  // namespace quire
