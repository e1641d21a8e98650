#include "worker/client/pool_mapping.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "cache_service/base/error.h"
#include "proto/quire/v1/pool_file.h"
#include "tests/support/temp_folder.h"

namespace quire::client {
namespace {

constexpr uint64_t kBlocksOffset = 8192;
constexpr uint64_t kBlockBytes = 4096;
constexpr uint64_t kBlocks = 3;

class PoolMappingTest : public testing::Test {
 protected:
  PoolMappingTest() {
    grant_ = {.rank = 0,
              .path = folder_.File("pool"),
              .blocks_offset = kBlocksOffset,
              .bytes = kBlocksOffset + kBlockBytes * kBlocks,
              .layout_id = 77,
              .layout_version = 1,
              .lease_word_offset = 4096 + 8 * 5,
              .lease_word = 5,
              .lock_offset = v1::kLockBase + 5,
              .epoch = 9,
              .block_bytes = kBlockBytes,
              .block_count = kBlocks};
    header_.epoch = 9;
    header_.layout_id = 77;
    header_.layout_version = 1;
    header_.block_bytes = kBlockBytes;
    header_.block_count = kBlocks;
    header_.blocks_offset = kBlocksOffset;
  }

  void WriteFile(uint64_t lease_word = 5) {
    std::vector<char> bytes(grant_.bytes, 0);
    std::memcpy(bytes.data(), &header_, sizeof(header_));
    std::memcpy(bytes.data() + grant_.lease_word_offset, &lease_word, sizeof(lease_word));
    std::ofstream(grant_.path, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

  absl::Status MapStatus() { return PoolMapping::Map(grant_).status(); }

  // Whether a conflicting lock on the lease's byte would be refused.
  bool Locked() {
    const int fd = open(grant_.path.c_str(), O_RDWR);

    struct flock lock {};

    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = static_cast<off_t>(grant_.lock_offset);
    lock.l_len = 1;
    EXPECT_EQ(fcntl(fd, F_OFD_GETLK, &lock), 0);
    close(fd);
    return lock.l_type != F_UNLCK;
  }

  TempFolder folder_;
  RegionGrant grant_;
  v1::PoolFileHeader header_;
};

TEST_F(PoolMappingTest, MapsTheBlocksUnderTheLeasesLock) {
  WriteFile();
  auto mapping = PoolMapping::Map(grant_);
  ASSERT_TRUE(mapping.ok()) << mapping.status();
  (*mapping)->blocks()[kBlockBytes] = std::byte{42};
  char byte = 0;
  std::ifstream file(grant_.path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(kBlocksOffset + kBlockBytes)).get(byte);
  EXPECT_EQ(byte, 42);
  EXPECT_TRUE(Locked());
  mapping->reset();
  EXPECT_FALSE(Locked());
}

TEST_F(PoolMappingTest, SeesARevokedLease) {
  WriteFile();
  auto mapping = PoolMapping::Map(grant_);
  ASSERT_TRUE(mapping.ok());
  EXPECT_TRUE((*mapping)->LeaseIsGood());
  const uint64_t revoked = 0;
  const int fd = open(grant_.path.c_str(), O_RDWR);
  ASSERT_EQ(pwrite(fd, &revoked, 8, static_cast<off_t>(grant_.lease_word_offset)), 8);
  close(fd);
  EXPECT_FALSE((*mapping)->LeaseIsGood());
}

TEST_F(PoolMappingTest, RefusesAFileThatIsNotTheGrantedOne) {
  EXPECT_EQ(MapStatus().code(), absl::StatusCode::kNotFound);
  WriteFile(/*lease_word=*/6);
  EXPECT_EQ(ReasonOf(MapStatus()), Reason::kLeaseExpired);
  EXPECT_FALSE(Locked());

  header_.layout_id = 78;
  WriteFile();
  EXPECT_EQ(ReasonOf(MapStatus()), Reason::kLayoutMismatch);
  header_.layout_id = 77;
  header_.epoch = 10;
  WriteFile();
  EXPECT_EQ(ReasonOf(MapStatus()), Reason::kEpochMismatch);
  header_.epoch = 9;
  header_.version = 2;
  WriteFile();
  EXPECT_EQ(MapStatus().code(), absl::StatusCode::kDataLoss);
  header_.version = 1;
  header_.magic = 0;
  WriteFile();
  EXPECT_EQ(MapStatus().code(), absl::StatusCode::kDataLoss);
}

TEST_F(PoolMappingTest, RefusesAShortFileAndAWordOutsideTheControlPages) {
  WriteFile();
  std::filesystem::resize_file(grant_.path, grant_.bytes - 1);
  EXPECT_EQ(MapStatus().code(), absl::StatusCode::kDataLoss);
  WriteFile();
  grant_.lease_word_offset = kBlocksOffset - 4;
  EXPECT_EQ(MapStatus().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace quire::client
