#include "cache_service/memory/pool_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "cache_service/memory/file_lock.h"
#include "cache_service/memory/pool_file_names.h"
#include "gtest/gtest.h"
#include "proto/quire/v1/pool_file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace quire {
namespace {

using testing::HasReason;
using testing::IsInvalid;
using testing::IsOk;

class PoolFileTest : public ::testing::Test {
 protected:
  PoolFileParams Params() const {
    return {.path = PoolFilePath(folder_.path(), "p", 0xABC, 0),
            .epoch = 0xABC,
            .rank = 0,
            .blocks_bytes = 3 * 4096,
            .lease_word_count = 512};
  }

  // What a worker finds at an offset.
  template <typename T>
  static T ReadAt(const std::string& path, uint64_t offset) {
    std::ifstream file(path, std::ios::binary);
    file.seekg(static_cast<std::streamoff>(offset));
    std::array<char, sizeof(T)> bytes{};
    file.read(bytes.data(), bytes.size());
    EXPECT_TRUE(file.good());
    T value;
    std::memcpy(&value, bytes.data(), sizeof(T));
    return value;
  }

  TempFolder folder_;
};

TEST_F(PoolFileTest, DescribesItselfAndIsFullyAllocated) {
  const auto file = PoolFile::Create(Params());
  ASSERT_THAT(file, IsOk());
  ASSERT_THAT((*file)->FixGeometry(
                  {.layout_id = 77, .layout_version = 1, .block_bytes = 4096, .block_count = 3}),
              IsOk());
  const auto header = ReadAt<v1::PoolFileHeader>((*file)->path(), 0);
  EXPECT_EQ(header.magic, v1::kPoolFileMagic);
  EXPECT_EQ(header.version, v1::kPoolFileVersion);
  EXPECT_EQ(header.epoch, 0xABCu);
  EXPECT_EQ(header.layout_id, 77u);
  EXPECT_EQ(header.block_bytes, 4096u);
  EXPECT_EQ(header.block_count, 3u);
  EXPECT_EQ(header.lease_words_offset, 4096u);
  EXPECT_EQ(header.blocks_offset, 8192u);
  struct stat info = {};
  ASSERT_EQ(stat((*file)->path().c_str(), &info), 0);
  EXPECT_EQ(info.st_size, 8192 + 3 * 4096);
  EXPECT_GE(info.st_blocks * 512, info.st_size);
}

TEST_F(PoolFileTest, TakesModeOnPurposeWhateverTheUmask) {
  PoolFileParams params = Params();
  params.mode = 0640;
  const mode_t before = umask(0777);
  const auto file = PoolFile::Create(params);
  umask(before);
  ASSERT_THAT(file, IsOk());
  struct stat info = {};
  ASSERT_EQ(stat(params.path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
}

TEST_F(PoolFileTest, LeaseWordIsSeenByWhoeverReadsTheFile) {
  const auto file = PoolFile::Create(Params());
  ASSERT_THAT(file, IsOk());
  ASSERT_THAT((*file)->SetLeaseWord(2, 41), IsOk());
  EXPECT_EQ(ReadAt<uint64_t>((*file)->path(), PoolFile::LeaseWordOffset(2)), 41u);
  ASSERT_THAT((*file)->SetLeaseWord(2, 0), IsOk());
  EXPECT_EQ(ReadAt<uint64_t>((*file)->path(), PoolFile::LeaseWordOffset(2)), 0u);
}

TEST_F(PoolFileTest, SeesSharedLocksOfTheLeaseUntilTheLastIsGone) {
  const auto file = PoolFile::Create(Params());
  ASSERT_THAT(file, IsOk());
  EXPECT_FALSE((*file)->IsLocked(9));
  struct flock lock = {};
  lock.l_type = F_RDLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(v1::kLockBase + 9);
  lock.l_len = 1;
  const int first = open((*file)->path().c_str(), O_RDWR);
  const int second = open((*file)->path().c_str(), O_RDWR);
  ASSERT_EQ(fcntl(first, F_OFD_SETLK, &lock), 0);
  ASSERT_EQ(fcntl(second, F_OFD_SETLK, &lock), 0);
  EXPECT_TRUE((*file)->IsLocked(9));
  EXPECT_FALSE((*file)->IsLocked(8));
  EXPECT_FALSE((*file)->IsLocked(10));
  close(first);
  EXPECT_TRUE((*file)->IsLocked(9));
  close(second);
  EXPECT_FALSE((*file)->IsLocked(9));
}

TEST_F(PoolFileTest, ReadsBlockBytesAndNothingBeyond) {
  const auto file = PoolFile::Create(Params());
  ASSERT_THAT(file, IsOk());
  const int fd = open((*file)->path().c_str(), O_RDWR);
  ASSERT_EQ(pwrite(fd, "kv", 2, static_cast<off_t>((*file)->blocks_offset() + 4096)), 2);
  close(fd);
  std::array<std::byte, 2> bytes{};
  ASSERT_THAT((*file)->Read(4096, bytes), IsOk());
  EXPECT_EQ(std::memcmp(bytes.data(), "kv", 2), 0);
  EXPECT_THAT((*file)->Read(3 * 4096 - 1, bytes), IsInvalid("offset"));
  EXPECT_THAT((*file)->Read(UINT64_MAX, bytes), IsInvalid("offset"));
}

TEST_F(PoolFileTest, AMappingSeesTheLeaseWordChange) {
  const auto file = PoolFile::Create(Params());
  ASSERT_THAT(file, IsOk());
  const int fd = open((*file)->path().c_str(), O_RDONLY);
  void* page = mmap(nullptr, 8192, PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  ASSERT_NE(page, MAP_FAILED);
  const auto* word = reinterpret_cast<const volatile uint64_t*>(static_cast<const char*>(page) +
                                                                PoolFile::LeaseWordOffset(3));
  EXPECT_EQ(*word, 0u);
  ASSERT_THAT((*file)->SetLeaseWord(3, 7), IsOk());
  EXPECT_EQ(*word, 7u);
  munmap(page, 8192);
}

TEST_F(PoolFileTest, CutShortItIsReportedAndNeverTouchedThroughAMapping) {
  const auto file = PoolFile::Create(Params());
  ASSERT_THAT(file, IsOk());
  ASSERT_THAT((*file)->Check(), IsOk());
  for (const off_t size : {off_t{0}, off_t{4096}, off_t{8192}, off_t{8192 + 3 * 4096 - 1}}) {
    ASSERT_EQ(truncate((*file)->path().c_str(), size), 0);
    const absl::Status cut = (*file)->Check();
    ASSERT_THAT(cut, HasReason(Reason::kInvariantBroken));
    EXPECT_EQ(FromStatus(cut).Detail("found_bytes"), std::to_string(size));
    EXPECT_EQ(FromStatus(cut).Detail("expected_bytes"), std::to_string(8192 + 3 * 4096));
    std::array<std::byte, 4096> bytes{};
    EXPECT_THAT((*file)->Read(2 * 4096, bytes), HasReason(Reason::kInvariantBroken));
    EXPECT_THAT((*file)->SetLeaseWord(2, 41), IsOk());
    EXPECT_THAT((*file)->FixGeometry({}), IsOk());
  }
}

TEST_F(PoolFileTest, RemovedByOthersItIsReported) {
  const auto file = PoolFile::Create(Params());
  ASSERT_THAT(file, IsOk());
  ASSERT_EQ(unlink((*file)->path().c_str()), 0);
  EXPECT_THAT((*file)->Check(), HasReason(Reason::kInvariantBroken));
}

TEST_F(PoolFileTest, IsGoneWithItsOwner) {
  {
    const auto file = PoolFile::Create(Params());
    ASSERT_THAT(file, IsOk());
    EXPECT_EQ(folder_.Names().size(), 1u);
  }
  EXPECT_TRUE(folder_.Names().empty());
}

TEST_F(PoolFileTest, FullFolderIsRefusedWithTheNumbersAndLeavesNothing) {
  PoolFileParams params = Params();
  params.blocks_bytes = uint64_t{1} << 46;
  const auto file = PoolFile::Create(params);
  ASSERT_THAT(file, IsInvalid("device_memory_bytes"));
  const Error error = FromStatus(file.status());
  EXPECT_EQ(error.Detail("needed_bytes"), std::to_string((uint64_t{1} << 46) + 8192));
  EXPECT_NE(error.Detail("free_bytes"), "");
  EXPECT_TRUE(folder_.Names().empty());
}

TEST_F(PoolFileTest, SizeThatNoFileCanHaveIsRefused) {
  PoolFileParams params = Params();
  params.blocks_bytes = UINT64_MAX - 100;
  EXPECT_THAT(PoolFile::Create(params), IsInvalid("device_memory_bytes"));
  EXPECT_TRUE(folder_.Names().empty());
}

TEST_F(PoolFileTest, MissingOrReadOnlyFolderIsRefusedByName) {
  // /proc is read-only even for the superuser.
  for (const char* folder : {"/proc", "/nowhere/at/all"}) {
    PoolFileParams params = Params();
    params.path = PoolFilePath(folder, "p", 1, 0);
    const auto file = PoolFile::Create(params);
    EXPECT_THAT(file, IsInvalid("memory_directory"));
  }
}

TEST_F(PoolFileTest, NamesAreRecognisedByPoolOnly) {
  const auto name = [](const char* pool) {
    return std::filesystem::path(PoolFilePath("/d", pool, 0x1F, 3)).filename().string();
  };
  EXPECT_EQ(name("a"), "quire-a-000000000000001f-rank3.pool");
  EXPECT_TRUE(IsFileOfPool(name("a"), "a"));
  EXPECT_FALSE(IsFileOfPool(name("a-b"), "a"));
  EXPECT_FALSE(IsFileOfPool(name("a"), "a-b"));
  EXPECT_FALSE(IsFileOfPool("quire-a-000000000000001f-rankX.pool", "a"));
  EXPECT_FALSE(IsFileOfPool("quire-a-.pool", "a"));
}

TEST_F(PoolFileTest, FilesOfDeadServersGoAndThoseOfLivingOnesStay) {
  const auto alive = PoolFile::Create(Params());
  ASSERT_THAT(alive, IsOk());
  // Another version, or no pool file at all: it is unlinked unread.
  std::ofstream(PoolFilePath(folder_.path(), "p", 0xDEAD, 0)) << "of another version";
  std::ofstream(PoolFilePath(folder_.path(), "q", 0xDEAD, 0)) << "of another pool";
  std::ofstream(folder_.File("notes.txt")) << "of somebody";
  EXPECT_EQ(RemoveFilesOfDeadServers(folder_.path(), "p"), 1);
  EXPECT_EQ(folder_.Names().size(), 3u);
  EXPECT_TRUE(std::filesystem::exists((*alive)->path()));
}

}  // namespace
}  // namespace quire
