#include "cache_service/memory/folder_locks.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <vector>

#include "tests/support/temp_folder.h"

namespace quire {
namespace {

constexpr std::chrono::minutes kLong(10);

ShmOptions In(const std::string& folder) { return {.pool_name = "p", .directory = folder}; }

TEST(FolderLocksTest, OneWaitsForTheOther) {
  const TempFolder folder;
  const std::vector<ShmOptions> pools = {In(folder.path()), In(folder.path() + "/.")};
  auto first = std::make_unique<FolderLocks>(pools, kLong, nullptr);
  EXPECT_EQ(first->size(), 1u);
  int looks = 0;
  const FolderLocks second(pools, kLong, [&] {
    if (++looks == 3) first.reset();
    return false;
  });
  EXPECT_EQ(looks, 3);
  EXPECT_EQ(second.size(), 1u);
}

TEST(FolderLocksTest, OtherFoldersAreFree) {
  const TempFolder one;
  const TempFolder other;
  const FolderLocks first(std::vector{In(one.path())}, kLong, nullptr);
  const FolderLocks second(std::vector{In(other.path())}, kLong, nullptr);
  EXPECT_EQ(first.size() + second.size(), 2u);
}

TEST(FolderLocksTest, AStartThatIsStoppedOrHasNoPatienceGoesWithout) {
  const TempFolder folder;
  const std::vector<ShmOptions> pools = {In(folder.path())};
  const FolderLocks first(pools, kLong, nullptr);
  EXPECT_EQ(FolderLocks(pools, kLong, [] { return true; }).size(), 0u);
  EXPECT_EQ(FolderLocks(pools, Duration::zero(), nullptr).size(), 0u);
  EXPECT_EQ(FolderLocks(std::vector{In("/nowhere")}, kLong, nullptr).size(), 0u);
}

}  // namespace
}  // namespace quire
