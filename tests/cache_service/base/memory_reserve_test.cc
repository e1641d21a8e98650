#include "cache_service/base/memory_reserve.h"

#include <gtest/gtest.h>

#include <new>
#include <thread>

namespace quire {
namespace {

TEST(MemoryReserveTest, IsGivenUpOnceAndTakenBack) {
  EXPECT_TRUE(HasMemoryReserve());
  ASSERT_TRUE(KeepMemoryReserve(size_t{1} << 20));
  const std::new_handler failed = std::get_new_handler();
  ASSERT_NE(failed, nullptr);
  for (int round = 0; round < 3; ++round) {
    EXPECT_NO_THROW(failed());
    EXPECT_THROW(failed(), std::bad_alloc);
    EXPECT_TRUE(HasMemoryReserve());
  }
  // What one thread gave up another one may have, once.
  std::thread([failed] { EXPECT_NO_THROW(failed()); }).join();
  EXPECT_NO_THROW(failed());
  EXPECT_THROW(failed(), std::bad_alloc);
  std::set_new_handler(nullptr);
}

TEST(MemoryReserveTest, MoreThanThereIsIsRefused) {
  EXPECT_FALSE(KeepMemoryReserve(SIZE_MAX / 2));
  EXPECT_FALSE(HasMemoryReserve());
  ASSERT_TRUE(KeepMemoryReserve(1));
  std::set_new_handler(nullptr);
}

}  // namespace
}  // namespace quire
