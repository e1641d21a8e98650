#include "cache_service/memory/shm_pool_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "cache_service/memory/pool_file_names.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace quire {
namespace {

using testing::HasReason;
using testing::IsInvalid;
using testing::IsOk;

// What a worker process does with a grant, less the mapping.
class Holder {
 public:
  explicit Holder(const MemoryGrant& grant) : fd_(open(grant.path.c_str(), O_RDWR)) {
    struct flock lock = {};
    lock.l_type = F_RDLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = static_cast<off_t>(grant.lock_offset);
    lock.l_len = 1;
    EXPECT_EQ(fcntl(fd_, F_OFD_SETLK, &lock), 0);
  }

  ~Holder() { close(fd_); }

  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

 private:
  int fd_;
};

uint64_t WordOf(const MemoryGrant& grant) {
  std::ifstream file(grant.path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(grant.lease_word_offset));
  char bytes[8] = {};
  file.read(bytes, sizeof(bytes));
  uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

class ShmPoolMemoryTest : public ::testing::Test {
 protected:
  ShmOptions Options(uint32_t ranks = 1) const {
    return {.pool_name = "p",
            .directory = folder_.path(),
            .epoch = 5,
            .ranks = ranks,
            .bytes = 8192,
            .max_leases = 4};
  }

  TempFolder folder_;
};

TEST_F(ShmPoolMemoryTest, GrantsOneRegionPerRank) {
  const auto memory = ShmPoolMemory::Create(Options(2));
  ASSERT_THAT(memory, IsOk());
  const auto grants = (*memory)->Grant(1);
  ASSERT_THAT(grants, IsOk());
  ASSERT_EQ(grants->size(), 2u);
  EXPECT_NE((*grants)[0].path, (*grants)[1].path);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ((*grants)[rank].rank, rank);
    EXPECT_EQ((*grants)[rank].bytes, 8192u);
    EXPECT_EQ(WordOf((*grants)[rank]), (*grants)[rank].lease_word);
  }
}

TEST_F(ShmPoolMemoryTest, RevokedLeaseReadsAnotherWordAndItsSlotIsUsedAgain) {
  const auto memory = ShmPoolMemory::Create(Options());
  ASSERT_THAT(memory, IsOk());
  const MemoryGrant first = (*memory)->Grant(1)->front();
  (*memory)->Revoke(1);
  EXPECT_NE(WordOf(first), first.lease_word);
  const MemoryGrant second = (*memory)->Grant(2)->front();
  EXPECT_EQ(second.lease_word_offset, first.lease_word_offset);
  EXPECT_EQ(WordOf(second), second.lease_word);
  EXPECT_NE(WordOf(first), first.lease_word);
}

TEST_F(ShmPoolMemoryTest, LeaseThatEndedFirstIsGrantedRevoked) {
  const auto memory = ShmPoolMemory::Create(Options());
  ASSERT_THAT(memory, IsOk());
  (*memory)->Revoke(3);
  const MemoryGrant grant = (*memory)->Grant(3)->front();
  EXPECT_NE(WordOf(grant), grant.lease_word);
}

TEST_F(ShmPoolMemoryTest, MappedMeansEveryRegionAndGoneMeansNone) {
  const auto memory = ShmPoolMemory::Create(Options(2));
  ASSERT_THAT(memory, IsOk());
  const auto grants = (*memory)->Grant(1);
  ASSERT_THAT(grants, IsOk());
  EXPECT_FALSE((*memory)->IsMapped(1));
  EXPECT_TRUE((*memory)->IsGone(1));
  auto first = std::make_unique<Holder>((*grants)[0]);
  EXPECT_FALSE((*memory)->IsMapped(1));
  EXPECT_FALSE((*memory)->IsGone(1));
  auto second = std::make_unique<Holder>((*grants)[1]);
  EXPECT_TRUE((*memory)->IsMapped(1));
  first.reset();
  EXPECT_FALSE((*memory)->IsGone(1));
  second.reset();
  EXPECT_TRUE((*memory)->IsGone(1));
}

TEST_F(ShmPoolMemoryTest, FailedRankLeavesNoFileOfTheOthers) {
  const std::string in_the_way = PoolFilePath(folder_.path(), "p", 5, 1) + ".new";
  std::ofstream(in_the_way) << "of somebody";
  EXPECT_THAT(ShmPoolMemory::Create(Options(2)), IsInvalid("memory_directory"));
  EXPECT_EQ(folder_.Names().size(), 1u);
  EXPECT_TRUE(std::filesystem::exists(in_the_way));
}

TEST_F(ShmPoolMemoryTest, OldFilesOfThePoolGoAtStartAndOwnOnesAtTheEnd) {
  std::ofstream(PoolFilePath(folder_.path(), "p", 4, 0)) << "left by a dead server";
  {
    const auto memory = ShmPoolMemory::Create(Options());
    ASSERT_THAT(memory, IsOk());
    EXPECT_EQ(folder_.Names().size(), 1u);
  }
  EXPECT_TRUE(folder_.Names().empty());
}

TEST_F(ShmPoolMemoryTest, ReadsOnlyRanksThatExist) {
  const auto memory = ShmPoolMemory::Create(Options());
  ASSERT_THAT(memory, IsOk());
  std::byte byte{};
  EXPECT_THAT((*memory)->Read(0, 8191, {&byte, 1}), IsOk());
  EXPECT_THAT((*memory)->Read(1, 0, {&byte, 1}), IsInvalid("rank"));
}

TEST_F(ShmPoolMemoryTest, MoreLeasesThanWordsIsALimit) {
  const auto memory = ShmPoolMemory::Create(Options());
  ASSERT_THAT(memory, IsOk());
  uint64_t lease = 1;
  while ((*memory)->Grant(lease).ok()) ++lease;
  EXPECT_GT(lease, 4u);
  EXPECT_THAT((*memory)->Grant(lease), HasReason(Reason::kLimitExceeded));
}

}  // namespace
}  // namespace quire
