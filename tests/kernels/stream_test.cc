// Streams and events. The device runs queued work as late as it may, stream by stream in a random
// order that events allow, so that a missing event shows as wrong bytes.
#include <gtest/gtest.h>

#include <vector>

#include "kernels/simt/emulated_runtime.h"
#include "tests/kernels/testing/blocks.h"

namespace quire::kernels::testing {
namespace {

constexpr int kBlocks = 6;
constexpr int kSeeds = 20;

std::unique_ptr<DeviceBackend> LateBackend(uint64_t seed) {
  auto backend = emulated::MakeBackend({.emulator = {}, .late_seed = seed});
  EXPECT_TRUE(backend.ok());
  return std::move(*backend);
}

PagedKvLayout SmallLayout() {
  return Layout({.layers = 2, .kv_heads = 2, .head_dim = 64, .block_tokens = 8});
}

// Copies block 0 to block 1 on one stream and offloads block 1 on another. True if the offloaded
// bytes are those of block 0.
bool OffloadedWhatWasWritten(uint64_t seed, bool with_event) {
  TestPool device = FilledPool(SmallLayout(), kBlocks);
  TestPool host(SmallLayout(), kBlocks);
  const auto backend = LateBackend(seed);
  const Result<StreamId> compute = backend->NewStream();
  const Result<StreamId> copies = backend->NewStream();
  EXPECT_TRUE(compute.ok() && copies.ok());
  const CopyOrder order{0, 1, 8};
  EXPECT_TRUE(backend->UseStream(*compute).ok());
  EXPECT_TRUE(backend->CopyBlocks(device.view(), {&order, 1}).ok());
  if (with_event) {
    const Result<EventId> written = backend->Record(*compute);
    EXPECT_TRUE(written.ok() && backend->Wait(*copies, *written).ok());
  }
  const BlockPair pair{1, 3};
  EXPECT_TRUE(backend->UseStream(*copies).ok());
  EXPECT_TRUE(backend->TransferBlocks(device.view(), host.view(), {&pair, 1}).ok());
  EXPECT_TRUE(backend->Synchronize(*copies).ok());
  return host.Bytes(3) == device.Bytes(0);
}

TEST(StreamTest, K28_AnEventOrdersTheOffloadAfterTheWrite) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    EXPECT_TRUE(OffloadedWhatWasWritten(seed, true)) << seed;
  }
}

TEST(StreamTest, K28_AMissingEventShowsAsWrongBytes) {
  int wrong = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    if (!OffloadedWhatWasWritten(seed, false)) ++wrong;
  }
  EXPECT_GT(wrong, 0);
  EXPECT_LT(wrong, kSeeds);  // some orders are lucky, as on hardware
}

TEST(StreamTest, K28_NothingIsCompleteBeforeItsEvent) {
  TestPool device = FilledPool(SmallLayout(), kBlocks);
  TestPool host(SmallLayout(), kBlocks);
  const auto backend = LateBackend(7);
  const Result<StreamId> stream = backend->NewStream();
  ASSERT_TRUE(stream.ok() && backend->UseStream(*stream).ok());
  const BlockPair pair{2, 4};
  ASSERT_TRUE(backend->TransferBlocks(device.view(), host.view(), {&pair, 1}).ok());
  const Result<EventId> done = backend->Record(*stream);
  ASSERT_TRUE(done.ok());
  EXPECT_NE(host.Bytes(4), device.Bytes(2));
  int polls = 0;
  while (true) {
    const Result<bool> passed = backend->HasPassed(*done);
    ASSERT_TRUE(passed.ok());
    if (*passed) break;
    ASSERT_LT(++polls, 100);
  }
  EXPECT_EQ(host.Bytes(4), device.Bytes(2));
}

TEST(StreamTest, StagingIsNotReusedBeforeItsStreamHasPassed) {
  // Each copy list is uploaded for itself; a list that overwrote the one before would copy
  // elsewhere.
  TestPool pool = FilledPool(SmallLayout(), kBlocks);
  const std::vector<std::byte> first = pool.Bytes(0);
  const auto backend = LateBackend(3);
  const Result<StreamId> stream = backend->NewStream();
  ASSERT_TRUE(stream.ok() && backend->UseStream(*stream).ok());
  for (int32_t i = 0; i + 1 < kBlocks; ++i) {
    const CopyOrder order{i, i + 1, 8};
    ASSERT_TRUE(backend->CopyBlocks(pool.view(), {&order, 1}).ok());
  }
  ASSERT_TRUE(backend->Synchronize(*stream).ok());
  for (int64_t b = 0; b < kBlocks; ++b) EXPECT_EQ(pool.Bytes(b), first) << b;
}

TEST(StreamTest, WaitingForWhatNobodyRecordsIsReported) {
  const auto backend = LateBackend(5);
  EXPECT_EQ(backend->UseStream(4).argument(), "stream");
  EXPECT_EQ(backend->Record(-1).status().argument(), "stream");
  EXPECT_EQ(backend->Wait(kDefaultStream, 3).argument(), "event");
  EXPECT_EQ(backend->HasPassed(-1).status().argument(), "event");
}

TEST(StreamTest, AReleasedEventIsGoneAndItsIdComesBackOnce) {
  const auto backend = LateBackend(5);
  const Result<EventId> first = backend->Record(kDefaultStream);
  ASSERT_TRUE(first.ok());
  for (int i = 0; i < 2; ++i) backend->Release(*first);
  for (const EventId none : {EventId{-1}, EventId{77}, *first}) {
    backend->Release(none);
    EXPECT_EQ(backend->Wait(kDefaultStream, none).argument(), "event") << none;
    EXPECT_EQ(backend->HasPassed(none).status().argument(), "event") << none;
  }
  const Result<EventId> second = backend->Record(kDefaultStream);
  const Result<EventId> third = backend->Record(kDefaultStream);
  ASSERT_TRUE(second.ok() && third.ok());
  EXPECT_EQ(*second, *first);
  EXPECT_NE(*third, *second);
}

// Who waits for an event waits for what was recorded then, whatever its id is used for later.
TEST(StreamTest, AWaitOutlivesTheReleaseOfItsEvent) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    TestPool device = FilledPool(SmallLayout(), kBlocks);
    TestPool host(SmallLayout(), kBlocks);
    const auto backend = LateBackend(seed);
    const Result<StreamId> compute = backend->NewStream();
    const Result<StreamId> copies = backend->NewStream();
    ASSERT_TRUE(compute.ok() && copies.ok());
    const CopyOrder order{0, 1, 8};
    ASSERT_TRUE(backend->UseStream(*compute).ok());
    ASSERT_TRUE(backend->CopyBlocks(device.view(), {&order, 1}).ok());
    const Result<EventId> written = backend->Record(*compute);
    ASSERT_TRUE(written.ok() && backend->Wait(*copies, *written).ok());
    backend->Release(*written);
    ASSERT_EQ(*backend->Record(*copies), *written);  // passes only after the wait
    const BlockPair pair{1, 3};
    ASSERT_TRUE(backend->UseStream(*copies).ok());
    ASSERT_TRUE(backend->TransferBlocks(device.view(), host.view(), {&pair, 1}).ok());
    const Status done = backend->Synchronize(*copies);
    ASSERT_TRUE(done.ok()) << done.message();
    EXPECT_EQ(host.Bytes(3), device.Bytes(0)) << seed;
  }
}

TEST(StreamTest, MemoryThatCannotBeHadIsAStatus) {
  const auto backend = LateBackend(5);
  const Result<std::byte*> memory = backend->AllocateDevice(size_t{1} << 62);
  EXPECT_EQ(memory.status().code(), StatusCode::kInternal);
  EXPECT_EQ(backend->Synchronize(9).argument(), "stream");
}

}  // namespace
}  // namespace quire::kernels::testing
