// The fuzz target over a corpus made from seeds: runs with every compiler and needs no fuzzer.
#include "tests/fuzz/engine_bytes.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <utility>
#include <vector>

namespace quire::testing {
namespace {

std::vector<uint8_t> BytesOf(uint64_t seed, size_t count) {
  std::mt19937_64 random(seed);
  std::vector<uint8_t> bytes(count);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

TEST(EngineBytesPoolTest, BytesReachPoolsWithAndWithoutWindows) {
  std::set<std::pair<uint32_t, bool>> kinds;
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    const std::vector<uint8_t> bytes = BytesOf(seed, 16);
    ByteChoices choices(bytes);
    const ModelRunOptions options = PoolOf(choices);
    kinds.emplace(options.groups, options.windows);
  }
  EXPECT_EQ(kinds.size(), 6u);
}

class EngineBytesTest : public ::testing::TestWithParam<size_t> {};

TEST_P(EngineBytesTest, EngineAgreesWithTheModel) {
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    const std::vector<uint8_t> bytes = BytesOf(seed, GetParam());
    ASSERT_EQ(RunEngineBytes(bytes), "") << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Lengths, EngineBytesTest, ::testing::Values(16, 200, 1000, 4000));

TEST(EngineBytesTest, AnyStartOfAnInputIsAnInput) {
  const std::vector<uint8_t> bytes = BytesOf(99, 160);
  for (size_t size = 0; size <= bytes.size(); ++size) {
    ASSERT_EQ(RunEngineBytes(std::span(bytes).first(size)), "") << size;
  }
}

// A few bytes repeated press one kind of call harder than random ones do.
TEST(EngineBytesTest, RepeatedPatternsAgreeWithTheModel) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    std::vector<uint8_t> bytes = BytesOf(seed, 12);
    const std::vector<uint8_t> pattern = BytesOf(seed + 1000, 7 + seed);
    for (int i = 0; i < 12; ++i) bytes.insert(bytes.end(), pattern.begin(), pattern.end());
    ASSERT_EQ(RunEngineBytes(bytes), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace quire::testing
