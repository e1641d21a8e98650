#include "cache_service/base/tcp_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace quire {
namespace {

using ::testing::HasSubstr;
using testing::IsInvalid;
using testing::IsOk;

TEST(TcpAddressTest, IsHostAndPort) {
  for (const char* good : {"127.0.0.1:0", "localhost:65535", "[::1]:80", "0.0.0.0:9400"}) {
    EXPECT_THAT(CheckTcpAddress("f", good), IsOk()) << good;
  }
  for (const char* bad :
       {"", "9400", ":9400", "host:", "host:65536", "host:-1", "host:+1", "host: 1", "host:http"}) {
    EXPECT_THAT(CheckTcpAddress("f", bad), IsInvalid("f")) << bad;
  }
}

TEST(TcpAddressTest, SaysThatAPortIsInUse) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(fd, 1), 0);
  ASSERT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string text = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  const absl::Status status = CannotListen("f", text);
  close(fd);
  EXPECT_THAT(status, IsInvalid("f"));
  EXPECT_THAT(std::string(status.message()), HasSubstr(text + ": Address already in use"));
}

TEST(TcpAddressTest, SaysThatAnAddressIsNotOfThisMachine) {
  // 192.0.2.0/24 is reserved for documents.
  const absl::Status status = CannotListen("f", "192.0.2.1:80");
  EXPECT_THAT(std::string(status.message()), HasSubstr("Cannot assign requested address"));
}

TEST(TcpAddressTest, HasANumericSpelling) {
  for (const char* spelling : {"127.0.0.1:80", "127.1:80", "localhost:80", "127.0.0.1:080"}) {
    const absl::StatusOr<std::string> numeric = NumericAddress("f", spelling, false);
    ASSERT_THAT(numeric.status(), IsOk()) << spelling;
    EXPECT_EQ(*numeric, "127.0.0.1:80");
  }
  EXPECT_EQ(*NumericAddress("f", "[::1]:80", true), "[::1]:80");
  EXPECT_THAT(NumericAddress("f", "[::1]:80", false).status(), IsInvalid("f"));
  EXPECT_THAT(NumericAddress("f", "no-such-host.invalid:80", true).status(), IsInvalid("f"));
}

TEST(TcpAddressTest, CollidesWithItselfAndWithAllAddresses) {
  for (const char* other : {"127.0.0.1:9400", "0.0.0.0:9400", "[::]:9400"}) {
    EXPECT_TRUE(Collide("127.0.0.1:9400", other)) << other;
    EXPECT_TRUE(Collide(other, "127.0.0.1:9400")) << other;
  }
  for (const char* other : {"127.0.0.1:9401", "127.0.0.2:9400", "[::1]:9400", "0.0.0.0:0"}) {
    EXPECT_FALSE(Collide("127.0.0.1:9400", other)) << other;
  }
  EXPECT_FALSE(Collide("127.0.0.1:0", "127.0.0.1:0"));
}

}  // namespace
}  // namespace quire
