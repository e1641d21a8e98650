#include "cache_service/rpc/authenticator.h"

#include <fstream>

#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace quire {
namespace {

using testing::HasReason;
using testing::IsInvalid;
using testing::IsOk;

class AuthenticatorTest : public ::testing::Test {
 protected:
  absl::StatusOr<Authenticator> Load(const std::string& text) {
    std::ofstream(folder_.File("tokens")) << text;
    return Authenticator::FromFile(folder_.File("tokens"));
  }

  static absl::StatusOr<Caller> Call(const Authenticator& authenticator, const char* header) {
    return authenticator.Authenticate({{"authorization", header}});
  }

  TempFolder folder_;
};

TEST_F(AuthenticatorTest, TokenGivesTenantAndRole) {
  const auto loaded = Load(
      "# workers\n"
      "0123456789abcdef acme worker\n"
      "\n"
      "fedcba9876543210 * admin  # operators\n");
  ASSERT_THAT(loaded, IsOk());
  const auto worker = Call(*loaded, "Bearer 0123456789abcdef");
  ASSERT_THAT(worker, IsOk());
  EXPECT_EQ(worker->tenant, "acme");
  EXPECT_FALSE(worker->is_admin);
  const auto admin = Call(*loaded, "Bearer fedcba9876543210");
  ASSERT_THAT(admin, IsOk());
  EXPECT_EQ(admin->tenant, std::nullopt);
  EXPECT_TRUE(admin->is_admin);
}

TEST_F(AuthenticatorTest, AnythingElseIsUnauthenticated) {
  const auto loaded = Load("0123456789abcdef acme worker\n");
  ASSERT_THAT(loaded, IsOk());
  for (const char* header : {"Bearer 0123456789abcdeF", "Bearer 0123456789abcde", "Bearer ",
                             "0123456789abcdef", "Basic 0123456789abcdef", ""}) {
    EXPECT_THAT(Call(*loaded, header), HasReason(Reason::kUnauthenticated)) << header;
  }
  EXPECT_THAT(loaded->Authenticate({}), HasReason(Reason::kUnauthenticated));
}

TEST_F(AuthenticatorTest, WithoutTokensEverybodyMayDoEverything) {
  const auto caller = Authenticator::OpenToAll().Authenticate({});
  ASSERT_THAT(caller, IsOk());
  EXPECT_TRUE(caller->is_admin);
  EXPECT_EQ(caller->tenant, std::nullopt);
}

TEST_F(AuthenticatorTest, BadFilesAreRefusedWithTheirLine) {
  for (const char* text :
       {"0123456789abcdef acme\n", "0123456789abcdef acme root\n",
        "0123456789abcdef acme worker more\n", "short acme worker\n", "# nothing\n", ""}) {
    EXPECT_THAT(Load(text), IsInvalid("token_file")) << text;
  }
  EXPECT_THAT(Authenticator::FromFile("/nowhere"), IsInvalid("token_file"));
  const auto bad = Load("\n0123456789abcdef acme root\n");
  EXPECT_EQ(FromStatus(bad.status()).Detail("line"), "2");
}

}  // namespace
}  // namespace quire
