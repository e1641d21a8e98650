#include "cache_service/memory/block_checksums.h"

#include <fcntl.h>
#include <unistd.h>

#include "cache_service/memory/shm_pool_memory.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace quire {
namespace {

using testing::IsOk;

class BlockChecksumsTest : public ::testing::Test {
 protected:
  BlockChecksumsTest() {
    ModelShape shape;
    shape.dtype = kernels::DType::kF16;
    shape.kv_heads = 1;
    shape.head_dim = 64;
    // A group of three layers and one of two, which is padded.
    shape.groups = {{0, {0, 1, 2}}, {64, {3, 4}}};
    shape.block_tokens = 16;
    layout_ = *MakePoolLayout(shape);
    memory_ = *ShmPoolMemory::Create({.pool_name = "p",
                                      .directory = folder_.path(),
                                      .epoch = 1,
                                      .ranks = 2,
                                      .bytes = 4 * layout_.block_bytes});
    grants_ = *memory_->Grant(1);
    auto checksums = BlockChecksums::Create(*memory_, layout_);
    EXPECT_THAT(checksums, IsOk());
    checksums_ = *std::move(checksums);
  }

  void Write(uint32_t rank, uint64_t offset, char byte) {
    const int fd = open(grants_[rank].path.c_str(), O_RDWR);
    EXPECT_EQ(pwrite(fd, &byte, 1, static_cast<off_t>(grants_[rank].blocks_offset + offset)), 1);
    close(fd);
  }

  BlockContents::Checksum Of(uint32_t block, uint32_t group = 0) {
    return checksums_->ChecksumOf(BlockId{block}, group);
  }

  TempFolder folder_;
  PoolLayout layout_;
  std::unique_ptr<ShmPoolMemory> memory_;
  std::vector<MemoryGrant> grants_;
  std::unique_ptr<BlockChecksums> checksums_;
};

TEST_F(BlockChecksumsTest, EqualBytesAreEqualWhereverTheBlockLies) {
  EXPECT_EQ(Of(0), Of(3));
  Write(0, 17, 'x');
  Write(0, 2 * layout_.block_bytes + 17, 'x');
  EXPECT_EQ(Of(0), Of(2));
  EXPECT_NE(Of(0), Of(3));
}

TEST_F(BlockChecksumsTest, AnyByteOfAnyRankCounts) {
  const auto before = Of(1);
  Write(1, layout_.block_bytes + 5, 1);
  const auto after = Of(1);
  EXPECT_NE(after, before);
  // The same byte on the other rank is another content.
  Write(1, layout_.block_bytes + 5, 0);
  Write(0, layout_.block_bytes + 5, 1);
  EXPECT_NE(Of(1), after);
  EXPECT_NE(Of(1), before);
}

TEST_F(BlockChecksumsTest, PaddingDoesNotCount) {
  ASSERT_GT(layout_.PaddingBytes(1), 0u);
  const auto before = Of(1, 1);
  Write(0, 2 * layout_.block_bytes - 1, 'x');
  EXPECT_EQ(Of(1, 1), before);
}

TEST_F(BlockChecksumsTest, BlockOutsideTheRegionHasNoContent) {
  EXPECT_EQ(Of(4), BlockContents::Checksum{});
  EXPECT_NE(Of(3), BlockContents::Checksum{});
}

}  // namespace
}  // namespace quire
