#include "cache_service/base/zeroed_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <span>

namespace quire {
namespace {

// From the heap, mapped, and with room for huge pages.
constexpr size_t kSizes[] = {1, 100, 65536, 128 << 10, (2 << 20) - 1, (5 << 20) + 12345};

std::span<char> BytesOf(const ZeroedMemory& memory, size_t size) {
  return {static_cast<char*>(memory.data()), size};
}

TEST(ZeroedMemoryTest, AllBytesAreZeroAndWritable) {
  for (const size_t size : kSizes) {
    const ZeroedMemory memory(size);
    const std::span<char> bytes = BytesOf(memory, size);
    EXPECT_TRUE(std::all_of(bytes.begin(), bytes.end(), [](char byte) { return byte == 0; }))
        << size;
    std::fill(bytes.begin(), bytes.end(), 'x');
    EXPECT_EQ(bytes.back(), 'x');
  }
}

TEST(ZeroedMemoryTest, BeginsAtACacheLine) {
  for (const size_t size : kSizes) {
    const ZeroedMemory memory(size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % 64, 0u) << size;
  }
}

TEST(ZeroedMemoryTest, NothingIsNull) { EXPECT_EQ(ZeroedMemory(0).data(), nullptr); }

TEST(ZeroedMemoryTest, MovesKeepTheBytesWhereTheyAre) {
  for (const size_t size : kSizes) {
    ZeroedMemory first(size);
    BytesOf(first, size)[0] = 'a';
    void* const address = first.data();
    ZeroedMemory second(std::move(first));
    EXPECT_EQ(second.data(), address);
    EXPECT_EQ(first.data(), nullptr);
    first = std::move(second);
    EXPECT_EQ(BytesOf(first, size)[0], 'a');
  }
}

}  // namespace
}  // namespace quire
