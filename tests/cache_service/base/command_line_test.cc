#include "cache_service/base/command_line.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

ABSL_FLAG(std::string, test_text, "", "");
ABSL_FLAG(bool, test_bool, false, "");
ABSL_FLAG(int32_t, test_number, 0, "");

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::IsInvalid;
using testing::IsOk;

// What a program sees of these words.
class Arguments {
 public:
  explicit Arguments(std::vector<std::string> words) : words_(std::move(words)) {
    words_.insert(words_.begin(), "program");
    for (std::string& word : words_) pointers_.push_back(word.data());
  }

  absl::StatusOr<std::vector<std::string>> Set() {
    return SetFlags(static_cast<int>(pointers_.size()), pointers_.data());
  }

  bool Has(const char* word) {
    return HasWord(static_cast<int>(pointers_.size()), pointers_.data(), word);
  }

 private:
  std::vector<std::string> words_;
  std::vector<char*> pointers_;
};

TEST(CommandLineTest, ValuesStandBehindAnEqualSignOrInTheNextWord) {
  EXPECT_THAT(Arguments({"--test_text=a=b", "-test_number", "-7"}).Set(), IsOk());
  EXPECT_EQ(absl::GetFlag(FLAGS_test_text), "a=b");
  EXPECT_EQ(absl::GetFlag(FLAGS_test_number), -7);
}

TEST(CommandLineTest, ABoolNeedsNoValue) {
  EXPECT_THAT(Arguments({"--test_bool"}).Set(), IsOk());
  EXPECT_TRUE(absl::GetFlag(FLAGS_test_bool));
  EXPECT_THAT(Arguments({"--notest_bool"}).Set(), IsOk());
  EXPECT_FALSE(absl::GetFlag(FLAGS_test_bool));
  EXPECT_THAT(Arguments({"--test_bool=true"}).Set(), IsOk());
  EXPECT_TRUE(absl::GetFlag(FLAGS_test_bool));
}

TEST(CommandLineTest, OtherWordsComeBackInOrder) {
  const auto words = Arguments({"one", "--test_bool", "two", "--", "--three", "-"}).Set();
  ASSERT_THAT(words, IsOk());
  EXPECT_THAT(*words, ElementsAre("one", "two", "--three", "-"));
}

TEST(CommandLineTest, MistakesNameTheFlag) {
  EXPECT_THAT(Arguments({"--no_such_flag=1"}).Set(), IsInvalid("--no_such_flag"));
  EXPECT_THAT(Arguments({"--notest_text"}).Set(), IsInvalid("--notest_text"));
  EXPECT_THAT(Arguments({"--test_text"}).Set(), IsInvalid("--test_text"));
  EXPECT_THAT(Arguments({"--test_bool=maybe"}).Set(), IsInvalid("--test_bool"));
  const auto refused = Arguments({"--test_number=many"}).Set();
  ASSERT_THAT(refused, IsInvalid("--test_number"));
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("many"));
}

TEST(CommandLineTest, AnEmptyValueIsNotTheDefault) {
  absl::SetFlag(&FLAGS_test_text, "before");
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"--test_text="}, {"--test_text", ""}, {"--test_number="}, {"--test_bool="}}) {
    const std::string flag = words[0].substr(0, words[0].find('='));
    EXPECT_THAT(Arguments(words).Set(), IsInvalid(flag)) << words[0];
  }
  EXPECT_EQ(absl::GetFlag(FLAGS_test_text), "before");
  EXPECT_THAT(Arguments({"--no_such_flag="}).Set(), IsInvalid("--no_such_flag"));
}

TEST(CommandLineTest, FindsAWordWithoutAValue) {
  EXPECT_TRUE(Arguments({"--test_bool", "--help"}).Has("help"));
  EXPECT_TRUE(Arguments({"-h"}).Has("h"));
  EXPECT_FALSE(Arguments({"help", "--help=x", "--helpful"}).Has("help"));
}

}  // namespace
}  // namespace quire
