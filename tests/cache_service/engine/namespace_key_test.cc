#include "cache_service/engine/namespace_key.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace quire {
namespace {

std::string Key(const NamespaceParts& parts) { return NamespaceKey("model", "layout", parts); }

TEST(NamespaceKeyTest, S16_EveryPartSeparates) {
  std::set<std::string> keys = {
      Key({}),
      NamespaceKey("other", "layout", {}),
      NamespaceKey("model", "other", {}),
      Key({.adapter = "x"}),
      Key({.salt = "x"}),
      Key({.tenant = "x"}),
      Key({.weights_version = "x"}),
  };
  EXPECT_EQ(keys.size(), 7u);
  EXPECT_EQ(Key({.adapter = "x", .salt = "y"}), Key({.adapter = "x", .salt = "y"}));
}

TEST(NamespaceKeyTest, S17_PartsNeverRunTogether) {
  EXPECT_NE(Key({.adapter = "ab", .salt = "c"}), Key({.adapter = "a", .salt = "bc"}));
  EXPECT_NE(NamespaceKey("ab", "c", {}), NamespaceKey("a", "bc", {}));
  EXPECT_NE(Key({.adapter = "x"}), Key({.salt = "x"}));
}

TEST(NamespaceKeyTest, PartsThatLookLikeTagsAndLengthsStayApart) {
  // The text of a whole part inside another part.
  const std::string part = std::string("s\x01\0\0\0\0\0\0\0x", 10);
  EXPECT_NE(Key({.adapter = part}), Key({.salt = "x"}));
  EXPECT_NE(Key({.adapter = part, .salt = "x"}), Key({.adapter = part + part}));
  EXPECT_NE(Key({.adapter = std::string(256, 'a')}), Key({.adapter = std::string(512, 'a')}));
}

TEST(NamespaceKeyTest, LimitsEachPart) {
  const std::string most(1024, 'n');
  EXPECT_TRUE(ValidateNamespace({most, most, most, most}).ok());
  EXPECT_EQ(ValidateNamespace({.adapter = most + "n"}).Detail("field"), "namespace.adapter");
  EXPECT_EQ(ValidateNamespace({.salt = most + "n"}).Detail("field"), "namespace.salt");
  EXPECT_EQ(ValidateNamespace({.tenant = most + "n"}).Detail("field"), "namespace.tenant");
  const Error error = ValidateNamespace({.weights_version = most + "n"});
  EXPECT_EQ(error.Detail("field"), "namespace.weights_version");
  EXPECT_EQ(error.Detail("limit"), "1024");
  EXPECT_EQ(error.reason, Reason::kInvalidArgument);
}

struct DigestCase {
  std::string name;
  std::vector<DigestRange> digests;
  std::string field;
};

class DigestTest : public ::testing::TestWithParam<DigestCase> {};

TEST_P(DigestTest, RangesAreInOrderInsideTheTokens) {
  const Error error = ValidateDigests(GetParam().digests, 20);
  EXPECT_EQ(error.Detail("field"), GetParam().field);
  EXPECT_EQ(error.ok(), GetParam().field.empty());
}

INSTANTIATE_TEST_SUITE_P(
    Table, DigestTest,
    ::testing::Values(DigestCase{"None", {}, ""}, DigestCase{"All", {{0, 20, {}}}, ""},
                      DigestCase{"Touching", {{2, 10, {}}, {10, 18, {}}}, ""},
                      DigestCase{"Empty", {{2, 2, {}}}, "digests[0].end"},
                      DigestCase{"Reversed", {{5, 2, {}}}, "digests[0].end"},
                      DigestCase{"Overlapping", {{2, 10, {}}, {9, 18, {}}}, "digests[1].start"},
                      DigestCase{"OutOfOrder", {{9, 18, {}}, {2, 4, {}}}, "digests[1].start"},
                      DigestCase{"Beyond", {{2, 21, {}}}, "digests[0].end"}),
    [](const ::testing::TestParamInfo<DigestCase>& c) { return c.param.name; });

}  // namespace
}  // namespace quire
