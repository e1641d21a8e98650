#include "cache_service/base/small_file.h"

#include <fstream>

#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace quire {
namespace {

using testing::IsInvalid;
using testing::IsOk;

class SmallFileTest : public ::testing::Test {
 protected:
  std::string FileOf(size_t bytes) {
    std::ofstream(folder_.File("file")) << std::string(bytes, 'x');
    return folder_.File("file");
  }

  TempFolder folder_;
};

TEST_F(SmallFileTest, IsReadWholeUpToTheLimit) {
  for (const size_t bytes : {size_t{0}, size_t{5}, kMostSmallFileBytes}) {
    const auto text = ReadSmallFile("f", FileOf(bytes));
    ASSERT_THAT(text, IsOk());
    EXPECT_EQ(text->size(), bytes);
  }
  const auto larger = ReadSmallFile("f", FileOf(kMostSmallFileBytes + 1));
  ASSERT_THAT(larger, IsInvalid("f"));
  EXPECT_EQ(FromStatus(larger.status()).Detail("limit"), "1048576");
}

TEST_F(SmallFileTest, WhatNeverEndsOrCannotBeReadIsRefused) {
  for (const std::string& path : {std::string("/dev/zero"), std::string("/dev/urandom"),
                                  folder_.path(), folder_.File("no")}) {
    EXPECT_THAT(ReadSmallFile("f", path), IsInvalid("f")) << path;
  }
}

}  // namespace
}  // namespace quire
