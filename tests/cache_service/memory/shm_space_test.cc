#include "cache_service/memory/shm_space.h"

#include <sys/statvfs.h>

#include <vector>

#include "cache_service/memory/shm_pool_memory.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace quire {
namespace {

using testing::IsInvalid;
using testing::IsOk;

class ShmSpaceTest : public ::testing::Test {
 protected:
  ShmOptions Options(uint64_t bytes, uint32_t ranks = 1) const {
    return {.pool_name = "p",
            .directory = folder_.path(),
            .epoch = 5,
            .ranks = ranks,
            .bytes = bytes,
            .max_leases = 4};
  }

  uint64_t FreeBytes() const {
    struct statvfs info = {};
    EXPECT_EQ(statvfs(folder_.path().c_str(), &info), 0);
    return uint64_t{info.f_bavail} * info.f_frsize;
  }

  TempFolder folder_;
};

TEST_F(ShmSpaceTest, RanksMustFitInTogether) {
  const uint64_t half = FreeBytes() / 2;
  EXPECT_THAT(CheckSpace(std::vector{Options(half)}, Space::kFree), IsOk());
  const std::vector ranks = {Options(half, 3)};
  const absl::Status status = CheckSpace(ranks, Space::kFree);
  ASSERT_THAT(status, IsInvalid("device_memory_bytes"));
  const Error error = FromStatus(status);
  EXPECT_EQ(error.Detail("needed_bytes"), std::to_string(3 * (half + 8192)));
  EXPECT_NE(error.Detail("free_bytes"), "");
  EXPECT_EQ(error.Detail("files"), "3");
  EXPECT_THAT(ShmPoolMemory::Create(ranks[0]), IsInvalid("device_memory_bytes"));
  EXPECT_TRUE(folder_.Names().empty());
}

TEST_F(ShmSpaceTest, PoolsOfOneFileSystemMustFitInTogether) {
  std::vector<ShmOptions> pools(3, Options(FreeBytes() / 2));
  EXPECT_THAT(MakeRoom(pools), IsInvalid("device_memory_bytes"));
  pools.resize(1);
  EXPECT_THAT(MakeRoom(pools), IsOk());
}

TEST_F(ShmSpaceTest, SumsBeyondSixtyFourBitsDoNotFit) {
  const std::vector<ShmOptions> pools(200, Options(kMostRegionBytes, 1024));
  for (const Space space : {Space::kWhole, Space::kFree}) {
    EXPECT_THAT(CheckSpace(pools, space), IsInvalid("device_memory_bytes"));
  }
}

TEST_F(ShmSpaceTest, ARegionIsNoLargerThanAProcessCanMap) {
  for (const uint64_t bytes : {kMostRegionBytes + 1, ~uint64_t{0} - 4096, ~uint64_t{0}}) {
    const absl::Status status = CheckSpace(std::vector{Options(bytes)}, Space::kWhole);
    ASSERT_THAT(status, IsInvalid("device_memory_bytes")) << bytes;
    EXPECT_EQ(FromStatus(status).Detail("given"), std::to_string(bytes));
    EXPECT_EQ(FromStatus(status).Detail("limit"), std::to_string(kMostRegionBytes));
    EXPECT_THAT(PoolFile::Create(FileOf(Options(bytes), 0)), IsInvalid("device_memory_bytes"));
  }
  EXPECT_TRUE(folder_.Names().empty());
}

TEST_F(ShmSpaceTest, FoldersAreTriedAndLeftAsTheyWere) {
  EXPECT_THAT(CheckFolders(std::vector{Options(1)}), IsOk());
  EXPECT_TRUE(folder_.Names().empty());
  for (const char* directory : {"/proc", "/nowhere", "/dev/null"}) {
    ShmOptions options = Options(1);
    options.directory = directory;
    EXPECT_THAT(CheckFolders(std::vector{Options(1), options}), IsInvalid("memory_directory"));
  }
}

TEST_F(ShmSpaceTest, AStartThatIsStoppedLeavesNothing) {
  // 64 MiB are taken at a time: two pieces of each rank.
  int left = 3;
  const auto stopped = [&left] { return left-- == 0; };
  const auto memory = ShmPoolMemory::Create(Options(uint64_t{65} << 20, 2), stopped);
  EXPECT_EQ(memory.status().code(), absl::StatusCode::kCancelled) << memory.status();
  EXPECT_EQ(left, -1);
  EXPECT_TRUE(folder_.Names().empty());
}

}  // namespace
}  // namespace quire
