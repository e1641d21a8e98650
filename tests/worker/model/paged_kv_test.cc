#include "worker/model/paged_kv.h"

#include <gtest/gtest.h>

#include "tests/worker/model/heap_pool.h"

namespace quire::model {
namespace {

ModelConfig WindowConfig() {
  ModelConfig config;
  config.layers = 2;
  config.layer_windows = {8, 0};
  return config;
}

class PagedKvTest : public testing::Test {
 protected:
  PagedKvTest() : config_(WindowConfig()), pool_(config_, GroupsOf(config_), 4, 32) {
    paged_ = *PagedKv::Create(config_, pool_.paged(), CpuKernels());
  }

  absl::Status Prepare(int32_t position, int32_t count,
                       const std::vector<std::vector<int32_t>>& tables) {
    const std::vector<TokenId> tokens(static_cast<size_t>(count), 1);
    LaunchBatch batch;
    batch.Add(position, tokens.data(), count);
    const SequenceTables spans = Spans(tables);
    return paged_->Prepare(batch, {&spans, 1});
  }

  ModelConfig config_;
  HeapPool pool_;
  std::unique_ptr<PagedKv> paged_;
};

TEST_F(PagedKvTest, RefusesTablesThatDoNotCoverTheLaunch) {
  EXPECT_TRUE(Prepare(0, 8, pool_.NewTables(8)).ok());
  EXPECT_EQ(Prepare(0, 9, pool_.NewTables(8)).code(), absl::StatusCode::kOutOfRange);
  auto hole = pool_.NewTables(8);
  hole[1][1] = kernels::kNoBlock;
  EXPECT_EQ(Prepare(4, 1, hole).code(), absl::StatusCode::kOutOfRange);
  hole.pop_back();
  EXPECT_EQ(Prepare(0, 1, hole).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(PagedKvTest, CopiesRunInOrderAcrossGroups) {
  const int32_t a = pool_.Take(), b = pool_.Take(), c = pool_.Take();
  std::memset(pool_.block(a), 1, pool_.block_bytes());
  std::memset(pool_.block(b), 2, pool_.block_bytes());
  std::memset(pool_.block(c), 3, pool_.block_bytes());
  // a -> b in group 0, then b -> c in group 1: c ends with the bytes of a.
  const GroupCopy copies[] = {{0, {a, b, 4}}, {1, {b, c, 4}}};
  ASSERT_TRUE(paged_->CopyBlocks(copies).ok());
  EXPECT_EQ(std::to_integer<int>(*pool_.block(c)), 1);
  const GroupCopy wrong[] = {{2, {a, b, 4}}};
  EXPECT_EQ(paged_->CopyBlocks(wrong).code(), absl::StatusCode::kInvalidArgument);
  const GroupCopy outside[] = {{0, {a, 32, 4}}};
  EXPECT_EQ(paged_->CopyBlocks(outside).code(), absl::StatusCode::kOutOfRange);
}

TEST_F(PagedKvTest, RefusesGroupsThatAreNotTheModels) {
  PagedPool pool = pool_.paged();
  pool.groups = {{0, {0, 1}}};
  EXPECT_EQ(PagedKv::Create(config_, pool, CpuKernels()).status().code(),
            absl::StatusCode::kInvalidArgument);
  pool.groups = {{8, {0}}};
  EXPECT_EQ(PagedKv::Create(config_, pool, CpuKernels()).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace quire::model
