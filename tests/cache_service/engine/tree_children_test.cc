// The children of one node, beside a list of their contents.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "cache_service/engine/prefix_tree.h"

namespace quire {
namespace {

constexpr uint32_t kBlock = 8;

struct Content {
  std::vector<TokenId> tokens = std::vector<TokenId>(kBlock);
  std::vector<DigestMark> marks;

  ContentView View(uint32_t count = kBlock) const { return {tokens.data(), count, marks}; }

  friend bool operator==(const Content&, const Content&) = default;
};

// Few tokens and inputs, so that contents have much in common.
Content RandomContent(std::mt19937_64& random, uint32_t tokens) {
  Content content;
  for (TokenId& token : content.tokens) token = static_cast<TokenId>(random() % tokens);
  if (random() % 4 == 0) {
    DigestMark mark{
        static_cast<uint32_t>(random() % kBlock), kBlock, static_cast<uint32_t>(random() % 2), {}};
    mark.digest[31] = static_cast<uint8_t>(random() % 2);
    content.marks.push_back(mark);
  }
  return content;
}

class TreeChildrenTest : public ::testing::Test {
 protected:
  TreeChildrenTest() { tree_.UseRoot(root_); }

  void Add(const Content& content) {
    children_[tree_.AddChild(root_, content.View(), kNoWorker, 1)] = content;
  }

  void Remove(NodeId node) {
    tree_.Remove(node);
    children_.erase(node);
  }

  NodeId Known(const Content& content) const {
    for (const auto& [node, known] : children_) {
      if (known == content) return node;
    }
    return kNoNode;
  }

  void ExpectFound(const Content& content) const {
    EXPECT_EQ(tree_.FindChild(root_, content.View()), Known(content));
  }

  // Every child with something in common comes once, by falling common length.
  void ExpectPartial(const Content& content, uint32_t count) const {
    std::multiset<std::pair<uint32_t, NodeId>> expected;
    for (const auto& [node, known] : children_) {
      const uint32_t common = CommonLength(known.View(), content.View(count));
      if (common > 0) expected.emplace(common, node);
    }
    std::multiset<std::pair<uint32_t, NodeId>> seen;
    uint32_t last = kBlock;
    tree_.VisitPartial(root_, content.View(count), [&](NodeId child, uint32_t common) {
      EXPECT_LE(common, last);
      last = common;
      seen.emplace(common, child);
      return false;
    });
    EXPECT_EQ(seen, expected);
  }

  void ExpectAll() const {
    std::set<NodeId> seen;
    tree_.VisitChildren(root_, [&](NodeId child) { EXPECT_TRUE(seen.insert(child).second); });
    EXPECT_EQ(seen.size(), children_.size());
    for (const auto& [node, content] : children_) {
      EXPECT_TRUE(seen.contains(node));
      EXPECT_EQ(tree_.FindChild(root_, content.View()), node);
    }
  }

  // Adds content that is new, or removes what is there.
  void Change(std::mt19937_64& random, uint32_t tokens, bool growing) {
    const Content content = RandomContent(random, tokens);
    if (Known(content) == kNoNode && (growing || random() % 4 == 0)) {
      Add(content);
    } else if (!children_.empty() && (!growing || random() % 4 == 0)) {
      Remove(std::next(children_.begin(), static_cast<long>(random() % children_.size()))->first);
    }
  }

  Journal journal_;
  PrefixTree tree_{2000, kBlock, 1, &journal_};
  NodeId root_ = tree_.GetRoot("root");
  std::map<NodeId, Content> children_;
};

TEST_F(TreeChildrenTest, AreFoundByContentAndByWhatTheyHaveInCommon) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 6000; ++i) {
    const uint32_t tokens = i / 1000 % 2 == 0 ? 2 : 40;
    Change(random, tokens, i / 500 % 2 == 0);
    const Content content = RandomContent(random, tokens);
    ExpectFound(content);
    if (i % 10 == 0) ExpectPartial(content, static_cast<uint32_t>(random() % kBlock) + 1);
    if (i % 100 == 0) ExpectAll();
    if (HasFailure()) return;
  }
}

TEST_F(TreeChildrenTest, AreAsBeforeWhenChangesAreUndone) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 400; ++i) {
    const uint32_t tokens = i % 2 == 0 ? 2 : 40;
    for (int k = 0; k < 5; ++k) Change(random, tokens, i / 50 % 2 == 0);
    const std::map<NodeId, Content> before = children_;
    journal_.Start();
    const auto changes = static_cast<int>(random() % 40);
    for (int k = 0; k < changes; ++k) Change(random, tokens, random() % 2 == 0);
    journal_.Rollback();
    children_ = before;
    ExpectAll();
    ExpectPartial(RandomContent(random, tokens), kBlock);
    if (HasFailure()) return;
  }
}

TEST_F(TreeChildrenTest, TheSameTokensOfDifferentInputsAreDifferentContents) {
  Content plain;
  Content image = plain;
  image.marks.push_back({0, kBlock, 0, {}});
  Content shifted = plain;
  shifted.marks.push_back({0, kBlock, 1, {}});
  for (const Content& content : {plain, image, shifted}) Add(content);
  for (const Content& content : {plain, image, shifted}) ExpectFound(content);
  Remove(Known(image));
  for (const Content& content : {plain, image, shifted}) ExpectFound(content);
  ExpectPartial(image, kBlock);
}

TEST_F(TreeChildrenTest, AVisitEndsWhereItIsTold) {
  for (TokenId token = 0; token < 10; ++token) {
    Content content;
    content.tokens[5] = token;
    Add(content);
  }
  Content content;
  content.tokens[5] = 3;
  content.tokens[6] = 1;
  std::vector<uint32_t> lengths;
  tree_.VisitPartial(root_, content.View(), [&](NodeId, uint32_t common) {
    lengths.push_back(common);
    return lengths.size() == 3;
  });
  EXPECT_EQ(lengths, (std::vector<uint32_t>{6, 5, 5}));
}

}  // namespace
}  // namespace quire
