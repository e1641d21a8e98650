// Comparing the contents of blocks.
#include "cache_service/engine/content.h"

#include <gtest/gtest.h>

#include <numeric>
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

}  // namespace
}  // namespace quire
