// The table of children by token, beside a map of the standard library.
#include "cache_service/engine/token_table.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace quire {
namespace {

using Model = std::map<TokenId, ChildRef>;

void ExpectSame(const TokenTable& table, const Model& model) {
  ASSERT_EQ(table.size(), model.size());
  for (const auto& [token, child] : model) {
    const ChildRef* const found = table.Find(token);
    ASSERT_NE(found, nullptr) << token;
    EXPECT_EQ(*found, child);
  }
  size_t visited = 0;
  table.VisitUntil([&](ChildRef) { return ++visited > model.size(); });
  EXPECT_EQ(visited, model.size());
}

TEST(TokenTableTest, HoldsWhatAMapHolds) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::mt19937_64 random(seed);
    TokenTable table(seed);
    Model model;
    // It fills up and empties again, several times.
    const uint32_t tokens = seed % 2 == 0 ? 50 : 5000;
    for (int i = 0; i < 20'000; ++i) {
      const auto token = static_cast<TokenId>(random() % tokens);
      const bool growing = i / 4000 % 2 == 0;
      if (const auto found = model.find(token); found == model.end()) {
        if (!growing && random() % 4 != 0) continue;
        model[token] = static_cast<ChildRef>(random() % 1000) + 1;
        table.Insert(token, model[token]);
      } else if (!growing || random() % 4 == 0) {
        table.Erase(token);
        model.erase(found);
      }
      if (i % 500 == 0) ExpectSame(table, model);
      ASSERT_EQ(table.Find(token) != nullptr, model.contains(token));
    }
    ExpectSame(table, model);
  }
}

TEST(TokenTableTest, EveryTokenIdCanStandInIt) {
  TokenTable table(1);
  EXPECT_EQ(table.Find(0), nullptr);
  for (const TokenId token : {0u, 1u, 0x7FFFFFFFu, 0x80000000u, 0xFFFFFFFFu}) {
    table.Insert(token, token / 2 + 1);
  }
  for (const TokenId token : {0u, 1u, 0x7FFFFFFFu, 0x80000000u, 0xFFFFFFFFu}) {
    EXPECT_EQ(*table.Find(token), token / 2 + 1);
  }
}

TEST(TokenTableTest, TheOrderDependsOnTheSeedAndOnNothingElse) {
  const auto order = [](uint64_t seed) {
    TokenTable table(seed);
    for (TokenId token = 0; token < 100; ++token) table.Insert(token, token + 1);
    std::vector<ChildRef> children;
    table.VisitUntil([&](ChildRef child) {
      children.push_back(child);
      return false;
    });
    return children;
  };
  EXPECT_EQ(order(3), order(3));
  EXPECT_NE(order(3), order(4));
}

TEST(TokenTableTest, GivesMemoryBackWhenItEmpties) {
  TokenTable table(1);
  for (TokenId token = 0; token < 100'000; ++token) table.Insert(token, token + 1);
  EXPECT_TRUE(table.Prefetch(7));
  for (TokenId token = 1; token < 100'000; ++token) table.Erase(token);
  EXPECT_FALSE(table.Prefetch(7)) << "still a large table";
  EXPECT_EQ(table.First(), 1u);
}

}  // namespace
}  // namespace quire
