#include "cache_service/rpc/page.h"

#include <string>
#include <vector>

#include "cache_service/rpc/admin_convert.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace quire {
namespace {

using testing::IsInvalid;
using testing::IsOk;

absl::StatusOr<Pager> MakePager(uint32_t size, const std::string& token) {
  return Pager::Make(size, token, {"sequences", "pool", ""});
}

std::vector<std::string> PageOf(const std::vector<std::string>& keys, uint32_t size,
                                std::string& token) {
  auto pager = MakePager(size, token);
  EXPECT_THAT(pager, IsOk());
  std::vector<std::string> page;
  for (const std::string& key : keys) {
    if (pager->Takes(key)) page.push_back(key);
  }
  token = pager->next_page_token();
  return page;
}

TEST(PagerTest, PagesTogetherAreTheList) {
  const std::vector<std::string> keys = {"a", "b", "c", "d", "e"};
  std::vector<std::string> all;
  std::string token;
  int pages = 0;
  do {
    const auto page = PageOf(keys, 2, token);
    all.insert(all.end(), page.begin(), page.end());
    ++pages;
  } while (!token.empty());
  EXPECT_EQ(all, keys);
  EXPECT_EQ(pages, 3);
}

TEST(PagerTest, ExactlyFullPageHasNoNext) {
  std::string token;
  EXPECT_EQ(PageOf({"a", "b"}, 2, token).size(), 2u);
  EXPECT_EQ(token, "");
}

TEST(PagerTest, WhatComesAndGoesNeitherRepeatsNorHides) {
  std::string token;
  EXPECT_EQ(PageOf({"b", "d", "f"}, 2, token), (std::vector<std::string>{"b", "d"}));
  // "d" is gone; "a" and "e" are new.
  EXPECT_EQ(PageOf({"a", "b", "e", "f"}, 2, token), (std::vector<std::string>{"e", "f"}));
}

TEST(PagerTest, SizeAndTokenAreChecked) {
  EXPECT_THAT(MakePager(1001, ""), IsInvalid("page_size"));
  EXPECT_THAT(MakePager(1000, ""), IsOk());
  EXPECT_THAT(MakePager(1, "not base 64!"), IsInvalid("page_token"));
}

TEST(PagerTest, ATokenIsOfItsListAlone) {
  std::string token;
  PageOf({"a", "b"}, 1, token);
  ASSERT_FALSE(token.empty());
  EXPECT_THAT(MakePager(5, token), IsOk());
  const auto wrong = IsInvalid("page_token");
  EXPECT_THAT(Pager::Make(5, token, {"workers", "pool", ""}), wrong);
  EXPECT_THAT(Pager::Make(5, token, {"sequences", "poo", "l"}), wrong);
  EXPECT_THAT(Pager::Make(5, token, {"sequences", "pool", "w"}), wrong);
  EXPECT_THAT(Pager::Make(5, token, {"sequences", "pool"}), wrong);
}

TEST(SequenceKeyTest, OrdersByWorkerThenHandle) {
  EXPECT_LT(SequenceKey("a", 9), SequenceKey("a", 10));
  EXPECT_LT(SequenceKey("a", UINT64_MAX), SequenceKey("a!", 0));
  EXPECT_LT(SequenceKey("a", UINT64_MAX), SequenceKey("b", 0));
}

}  // namespace
}  // namespace quire
