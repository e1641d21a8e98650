// Comparing the contents of blocks.
#include "cache_service/engine/content.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace quire {
namespace {

// A parsed message puts its tokens at any address that suits a token.
TEST(SameTokensTest, ComparesAtEveryAddress) {
  for (const uint32_t count : {2u, 4u, 8u, 16u, 32u, 64u}) {
    std::vector<TokenId> left(count + 8);
    std::vector<TokenId> right(count + 8);
    for (uint32_t i = 0; i < 4; ++i) {
      for (uint32_t j = 0; j < 4; ++j) {
        std::iota(left.begin() + i, left.end(), 100u);
        std::iota(right.begin() + j, right.end(), 100u);
        EXPECT_TRUE(SameTokens(left.data() + i, right.data() + j, count)) << count;
      }
    }
  }
}

TEST(SameTokensTest, SeesEveryTokenThatDiffers) {
  for (const uint32_t count : {2u, 16u, 64u}) {
    const std::vector<TokenId> left(count + 1, 7);
    for (uint32_t i = 0; i < count; ++i) {
      std::vector<TokenId> right(count + 1, 7);
      right[i + 1] = 8;
      EXPECT_FALSE(SameTokens(left.data() + 1, right.data() + 1, count)) << i << " of " << count;
    }
    std::vector<TokenId> beyond(count + 1, 7);
    beyond[count] = 8;
    EXPECT_TRUE(SameTokens(left.data(), beyond.data(), count));
  }
}

TEST(MarksOfTest, AreThePartsOfTheRangesThatTouchTheBlock) {
  std::mt19937_64 random(1);
  for (int run = 0; run < 200; ++run) {
    std::vector<DigestRange> ranges;
    for (uint32_t at = 0; at < 60;) {
      const uint32_t start = at + static_cast<uint32_t>(random() % 5);
      at = start + 1 + static_cast<uint32_t>(random() % 20);
      ranges.push_back({start, at, Digest{static_cast<uint8_t>(run)}});
    }
    for (uint32_t first = 0; first < 80; ++first) {
      for (const uint32_t count : {1u, 7u, 16u}) {
        const std::vector<DigestMark> marks = MarksOf(ranges, first, count);
        for (uint32_t i = 0; i < count; ++i) {
          const auto at = std::find_if(ranges.begin(), ranges.end(), [&](const DigestRange& r) {
            return r.start <= first + i && first + i < r.end;
          });
          const auto mark = std::find_if(marks.begin(), marks.end(), [&](const DigestMark& m) {
            return m.start <= i && i < m.end;
          });
          ASSERT_EQ(at != ranges.end(), mark != marks.end()) << first << " " << i;
          if (mark == marks.end()) continue;
          EXPECT_EQ(mark->offset + (i - mark->start), first + i - at->start);
          EXPECT_EQ(mark->digest, at->digest);
        }
      }
    }
  }
}

}  // namespace
}  // namespace quire
