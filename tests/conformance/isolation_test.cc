// Content is shared inside one namespace and decided on the tokens themselves.
#include <array>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/scenario.h"

namespace quire::testing {
namespace {

constexpr SequenceHandle kA = 1;
constexpr SequenceHandle kB = 2;
constexpr SequenceHandle kC = 3;

Digest Image(uint8_t seed) {
  Digest digest{};
  digest.fill(seed);
  return digest;
}

TEST(Isolation, S16_EveryPartOfTheNamespaceSeparates) {
  const std::vector<NamespaceParts> others = {{.adapter = "x"}, {.salt = "x"},
                                              {.tenant = "x"},  {.weights_version = "x"},
                                              {.adapter = "y"}, {.adapter = "x", .salt = "x"}};
  FacadeStory story(Pool(16, 60));
  Worker& w = story.Attach("w");
  SequenceHandle next = 1;
  w.Prompt(next++, Text(1, 48));
  for (const NamespaceParts& parts : others) {
    EXPECT_EQ(w.Prompt(next++, Text(1, 48), {.namespace_parts = parts}).reused_tokens, 0u);
    EXPECT_EQ(w.Prompt(next++, Text(1, 48), {.namespace_parts = parts}).reused_tokens, 47u);
    EXPECT_EQ(story.Peek(Text(1, 49), parts), 48u);
  }
  EXPECT_EQ(w.Prompt(next++, Text(1, 48)).reused_tokens, 47u);
}

TEST(Isolation, S16_AnotherModelFindsNothing) {
  FacadeStory story(Pool(16, 20));
  Worker& one = story.Attach("one", 1, "model");
  Worker& two = story.Attach("two", 1, "another model");
  one.Prompt(kA, Text(1, 48));
  EXPECT_EQ(two.Prompt(kA, Text(1, 48)).reused_tokens, 0u);
  EXPECT_EQ(two.Prompt(kB, Text(1, 48)).reused_tokens, 47u);
}

TEST(Isolation, S16_AnotherLayoutOrDtypeIsAnotherNamespace) {
  // One pool has one layout; its tag is a part of every key.
  EXPECT_NE(NamespaceKey("model", "bf16", {}), NamespaceKey("model", "fp16", {}));
  EXPECT_NE(NamespaceKey("model", "bf16", {}), NamespaceKey("modelbf16", "", {}));
  EXPECT_EQ(NamespaceKey("model", "bf16", {}), NamespaceKey("model", "bf16", {}));
}

TEST(Isolation, S17_PartsAreNotConfusedWithEachOther) {
  const std::vector<std::pair<NamespaceParts, NamespaceParts>> pairs = {
      {{.adapter = "x"}, {.salt = "x"}},
      {{.adapter = "ab", .salt = "c"}, {.adapter = "a", .salt = "bc"}},
      {{.salt = "ab", .tenant = "c"}, {.salt = "a", .tenant = "bc"}},
      {{.tenant = "v"}, {.weights_version = "v"}},
      {{.adapter = std::string("a\0b", 3)}, {.adapter = "a"}}};
  FacadeStory story(Pool(16, 80));
  Worker& w = story.Attach("w");
  SequenceHandle next = 1;
  uint32_t text = 1;
  for (const auto& [first, second] : pairs) {
    w.Prompt(next++, Text(text, 48), {.namespace_parts = first});
    EXPECT_EQ(w.Prompt(next++, Text(text, 48), {.namespace_parts = second}).reused_tokens, 0u);
    EXPECT_EQ(w.Prompt(next++, Text(text, 48), {.namespace_parts = second}).reused_tokens, 47u);
    ++text;
  }
}

// The prefix tree compares token ids and has no content hash that could be forced to collide. So
// the contents here are those that folding a block into 64 bits confuses most easily: permutations,
// and exchanges that keep the sum, the exclusive or and the first and last token.
TEST(Isolation, S18_ContentsThatAHashCouldConfuseAreToldApart) {
  Tokens base(16);
  for (uint32_t i = 0; i < 16; ++i) base[i] = 1u << i;
  std::vector<Tokens> contents = {base, Tokens(16, 0), Tokens(16, 0xFFFFFFFF)};
  for (uint32_t i = 0; i + 1 < 16; ++i) {
    Tokens swapped = base;
    std::swap(swapped[i], swapped[i + 1]);
    contents.push_back(swapped);
  }
  Tokens same_sum = base;
  same_sum[3] += 1;
  same_sum[7] -= 1;
  contents.push_back(same_sum);

  FacadeStory story(Pool(16, 80));
  Worker& w = story.Attach("w");
  SequenceHandle next = 1;
  for (const Tokens& content : contents) {
    w.Prompt(next++, Join(content, Text(1, 16)), {.skip_cache_read = true});
  }
  for (const Tokens& content : contents) {
    // The bytes of every begin are checked against its own tokens.
    EXPECT_EQ(w.Prompt(next, Join(content, Text(1, 17))).reused_tokens, 32u);
    w.ExpectConsistent();
    w.Finish(next++);
  }
  EXPECT_EQ(story.Held(), 2 * contents.size()) << "no content was taken for another";
}

TEST(Isolation, S18_EqualBlocksBelowDifferentPrefixesAreDifferentContent) {
  FacadeStory story(Pool(16, 40));
  Worker& w = story.Attach("w");
  w.Prompt(kA, Join(Text(1, 16), Text(9, 16)));
  w.Prompt(kB, Join(Text(2, 16), Text(9, 16)));
  EXPECT_NE(w.Table(kA)[1], w.Table(kB)[1]);
  EXPECT_EQ(w.Prompt(kC, Join(Text(3, 16), Text(9, 16))).reused_tokens, 0u);
}

TEST(Isolation, S19_ADigestIsPartOfTheContent) {
  FacadeStory story(Pool(16, 20));
  Worker& w = story.Attach("w");
  const Tokens tokens = Text(1, 64);
  w.Prompt(kA, tokens, {.digests = {{36, 44, Image(1)}}});
  w.Finish(kA);
  const BeginResult same = w.Prompt(kB, tokens, {.digests = {{36, 44, Image(1)}}});
  EXPECT_EQ(same.reused_tokens, 63u);
  w.Finish(kB);
  const BeginResult other = w.Prompt(kC, tokens, {.digests = {{36, 44, Image(2)}}});
  EXPECT_EQ(other.reused_tokens, 36u);
  EXPECT_EQ(other.copied_tokens, 4u);
  w.Finish(kC);
  EXPECT_EQ(w.Prompt(4, tokens).reused_tokens, 36u) << "without a digest it is another content";
}

TEST(Isolation, S19_OneImageAndTheSameImageTwiceShareUpToItsSecondStart) {
  FacadeStory story(Pool(16, 20));
  Worker& w = story.Attach("w");
  const Tokens tokens = Text(1, 32);
  w.Prompt(kA, tokens, {.digests = {{2, 18, Image(1)}}});
  const BeginResult twice =
      w.Prompt(kB, tokens, {.digests = {{2, 10, Image(1)}, {10, 18, Image(1)}}});
  EXPECT_EQ(twice.reused_tokens, 10u);
  EXPECT_EQ(twice.copied_tokens, 10u);
}

TEST(Isolation, S19_AForkHasTheDigestsOfItsParent) {
  FacadeStory story(Pool(16, 20));
  Worker& w = story.Attach("w");
  const Tokens tokens = Text(1, 40);
  w.Prompt(kA, tokens, {.digests = {{36, 40, Image(1)}}});
  w.Fork(kA, {kB});
  w.Generate(kB, Text(9, 8));
  w.Commit(kB, 48);
  w.Settle();
  const Tokens longer = Join(Join(tokens, Text(9, 8)), Text(10, 1));
  EXPECT_EQ(w.Prompt(kC, longer, {.digests = {{36, 40, Image(1)}}}).reused_tokens, 48u);
  EXPECT_EQ(w.Prompt(4, longer, {.digests = {{36, 40, Image(2)}}}).reused_tokens, 36u);
}

}  // namespace
}  // namespace quire::testing
