#include "cache_service/rpc/pool_plan.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace quire {
namespace {

using ::testing::HasSubstr;
using testing::IsInvalid;
using testing::IsOk;

PoolOptions ByBytes(uint64_t bytes) {
  PoolOptions pool;
  pool.engine.pool_name = "p";
  pool.engine.max_sequence_tokens = 0;
  pool.device_memory_bytes = bytes;
  return pool;
}

PoolOptions ByBlocks(uint32_t blocks) {
  PoolOptions pool = ByBytes(0);
  pool.engine.memory = PoolMemoryKind::kWorker;
  pool.engine.block_count = blocks;
  return pool;
}

// 16 tokens x 2 heads x (K, V) x 64 x 4 bytes: 16 KiB a block.
ModelShape Shape() {
  ModelShape shape;
  shape.dtype = kernels::DType::kF32;
  shape.kv_heads = 2;
  shape.head_dim = 64;
  shape.layer_windows = {0};
  return shape;
}

TEST(PoolPlanTest, ALayoutThatIsKnownIsCheckedWithItsBlocks) {
  PoolOptions pool = ByBytes(10 * 16384);
  pool.shape = Shape();
  pool.engine.max_sequence_tokens = 160;
  EXPECT_THAT(CheckPool(pool), IsOk());
  pool.engine.max_sequence_tokens = 161;
  const absl::Status status = CheckPool(pool);
  ASSERT_THAT(status, IsInvalid("device_memory_bytes"));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("holds 10 blocks of 16 tokens and 16384 bytes in 163840 bytes, and cannot "
                        "hold one sequence of 161 tokens, which needs 11 blocks"));
  EXPECT_EQ(FromStatus(status).Detail("needed"), "180224");
}

TEST(PoolPlanTest, AnUnknownLayoutIsCheckedWithTheSmallestBlocks) {
  PoolOptions pool = ByBytes(4095);
  EXPECT_THAT(CheckPool(pool), IsInvalid("device_memory_bytes"));
  pool = ByBytes(4096);
  EXPECT_THAT(CheckPool(pool), IsOk());
  pool.engine.max_sequence_tokens = 17;
  EXPECT_THAT(CheckPool(pool), IsInvalid("device_memory_bytes"));
}

TEST(PoolPlanTest, APoolOfIdsIsCheckedWithFullAttention) {
  PoolOptions pool = ByBlocks(10);
  pool.engine.max_sequence_tokens = 160;
  EXPECT_THAT(CheckPool(pool), IsOk());
  pool.engine.max_sequence_tokens = 161;
  EXPECT_THAT(CheckPool(pool), IsInvalid("block_count"));
  // With windows only, a sequence of any length holds few blocks.
  pool.shape = ModelShape();
  pool.shape->layer_windows = {32};
  EXPECT_THAT(CheckPool(pool), IsOk());
}

TEST(PoolPlanTest, LengthThatNobodyGaveIsWhatFits) {
  PoolOptions pool = ByBytes(10 * 16384);
  const auto layout = MakePoolLayout(Shape());
  ASSERT_THAT(layout, IsOk());
  const auto options = PlanEngine(pool, *layout);
  ASSERT_THAT(options, IsOk());
  EXPECT_EQ(options->block_count, 10u);
  EXPECT_EQ(options->max_sequence_tokens, 160u);
}

TEST(PoolPlanTest, OtherOptionsOfTheEngineAreCheckedToo) {
  const std::pair<void (*)(EngineOptions&), const char*> cases[] = {
      {[](EngineOptions& o) { o.watermark = 1.0; }, "watermark"},
      {[](EngineOptions& o) { o.max_steps_in_flight = 0; }, "max_steps_in_flight"},
      {[](EngineOptions& o) { o.max_operations_per_step = 0; }, "max_operations_per_step"},
      {[](EngineOptions& o) { o.max_sequences_per_worker = 0; }, "max_sequences_per_worker"},
      {[](EngineOptions& o) { o.max_leases = 65001; }, "max_leases"},
      {[](EngineOptions& o) { o.retry_interval = Duration::zero(); }, "retry_interval"},
      {[](EngineOptions& o) { o.max_lease = std::chrono::seconds(1); }, "default_lease"},
      {[](EngineOptions& o) { o.max_lease = std::chrono::microseconds(999); }, "max_lease"},
      {[](EngineOptions& o) { o.default_lease = Duration(1); }, "default_lease"},
      {[](EngineOptions& o) { o.stream_grace = Duration(-1); }, "stream_grace"}};
  for (const auto& [change, option] : cases) {
    PoolOptions pool = ByBlocks(10);
    change(pool.engine);
    EXPECT_THAT(CheckPool(pool), IsInvalid(option));
  }
}

}  // namespace
}  // namespace quire
