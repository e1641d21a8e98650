#include "cache_service/rpc/unix_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace quire {
namespace {

using testing::IsInvalid;
using testing::IsOk;

int Bind(const std::string& path) {
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size());
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return fd;
}

// As a server that was killed does.
void LeaveSocket(const std::string& path) { close(Bind(path)); }

TEST(UnixSocketTest, OneOwnerAtATime) {
  const TempFolder folder;
  const std::string path = folder.File("s");
  auto first = UnixSocket::Claim(path);
  ASSERT_THAT(first, IsOk());
  EXPECT_THAT(UnixSocket::Claim(path), IsInvalid("unix_socket"));
  first->reset();
  EXPECT_THAT(UnixSocket::Claim(path), IsOk());
}

TEST(UnixSocketTest, AnOrderlyEndLeavesNothing) {
  const TempFolder folder;
  { ASSERT_THAT(UnixSocket::Claim(folder.File("s")), IsOk()); }
  EXPECT_TRUE(folder.Names().empty());
}

TEST(UnixSocketTest, ALockFileLeftByAKillDoesNotMatter) {
  const TempFolder folder;
  std::ofstream(folder.File("s.lock")) << "";
  EXPECT_THAT(UnixSocket::Claim(folder.File("s")), IsOk());
}

// Whoever opened the lock file before its owner removed it must not believe in that lock.
TEST(UnixSocketTest, ManyClaimersAndNeverTwoOwners) {
  const TempFolder folder;
  std::atomic<int> owners{0};
  std::atomic<int> claims{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int round = 0; round < 300; ++round) {
          auto socket = UnixSocket::Claim(folder.File("s"));
          if (!socket.ok()) continue;
          EXPECT_EQ(++owners, 1);
          ++claims;
          --owners;
        }
      });
    }
  }
  EXPECT_GT(claims, 0);
  EXPECT_TRUE(folder.Names().empty());
}

TEST(UnixSocketTest, SecondClaimLeavesTheFirstSocketAlone) {
  const TempFolder folder;
  const std::string path = folder.File("s");
  const auto first = UnixSocket::Claim(path);
  ASSERT_THAT(first, IsOk());
  LeaveSocket(path);
  EXPECT_THAT(UnixSocket::Claim(path), IsInvalid("unix_socket"));
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST(UnixSocketTest, SocketOfADeadServerIsRemoved) {
  const TempFolder folder;
  LeaveSocket(folder.File("s"));
  EXPECT_THAT(UnixSocket::Claim(folder.File("s")), IsOk());
  EXPECT_FALSE(std::filesystem::exists(folder.File("s")));
}

TEST(UnixSocketTest, ASocketThatSomebodyServesIsNotTaken) {
  const TempFolder folder;
  const int fd = Bind(folder.File("s"));
  ASSERT_EQ(listen(fd, 1), 0);
  EXPECT_THAT(UnixSocket::Claim(folder.File("s")), IsInvalid("unix_socket"));
  EXPECT_EQ(folder.Names(), std::vector<std::string>{"s"});
  close(fd);
  EXPECT_THAT(UnixSocket::Claim(folder.File("s")), IsOk());
}

TEST(UnixSocketTest, CheckFindsWhatClaimWouldAndChangesNothing) {
  const TempFolder folder;
  EXPECT_THAT(UnixSocket::Check(folder.File("new/s")), IsOk());
  EXPECT_THAT(UnixSocket::Check(folder.File("new/deeper/s")), IsInvalid("unix_socket"));
  EXPECT_TRUE(folder.Names().empty());
  std::ofstream(folder.File("file")) << "precious";
  EXPECT_THAT(UnixSocket::Check(folder.File("file")), IsInvalid("unix_socket"));
  EXPECT_THAT(UnixSocket::Check(folder.File("file/s")), IsInvalid("unix_socket"));
  std::filesystem::create_directory(folder.File("t.lock"));
  for (const char* name : {"t.lock", "t"}) {
    EXPECT_THAT(UnixSocket::Check(folder.File(name)), IsInvalid("unix_socket")) << name;
    EXPECT_THAT(UnixSocket::Claim(folder.File(name)), IsInvalid("unix_socket")) << name;
  }
  const auto served = UnixSocket::Claim(folder.File("s"));
  ASSERT_THAT(served, IsOk());
  EXPECT_THAT(UnixSocket::Check(folder.File("s")), IsOk());
}

TEST(UnixSocketTest, OtherFilesAreNotTouched) {
  const TempFolder folder;
  std::ofstream(folder.File("s")) << "precious";
  EXPECT_THAT(UnixSocket::Claim(folder.File("s")), IsInvalid("unix_socket"));
  EXPECT_TRUE(std::filesystem::exists(folder.File("s")));
}

TEST(UnixSocketTest, PathLongerThanTheKernelTakesIsRefusedWithTheNumbers) {
  const TempFolder folder;
  const std::string longest = folder.File(std::string(106 - folder.path().size(), 's'));
  ASSERT_EQ(longest.size(), 107u);
  EXPECT_THAT(UnixSocket::Claim(longest), IsOk());
  const auto longer = UnixSocket::Claim(longest + "s");
  ASSERT_THAT(longer, IsInvalid("unix_socket"));
  EXPECT_EQ(FromStatus(longer.status()).Detail("given"), "108");
}

TEST(UnixSocketTest, PathThatMeansAnotherAddressIsRefused) {
  const TempFolder folder;
  for (const char* name : {"a%20b", "a?b", "a#b"}) {
    EXPECT_THAT(UnixSocket::Claim(folder.File(name)), IsInvalid("unix_socket")) << name;
  }
  EXPECT_TRUE(folder.Names().empty());
}

TEST(UnixSocketTest, FolderIsMadePrivate) {
  const TempFolder folder;
  const auto socket = UnixSocket::Claim(folder.File("new/s"));
  ASSERT_THAT(socket, IsOk());
  struct stat info = {};
  ASSERT_EQ(stat(folder.File("new").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
}

TEST(UnixSocketTest, FolderOfAnotherUserIsRefused) {
  if (getuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
  const TempFolder folder;
  ASSERT_EQ(chown(folder.path().c_str(), 12345, 12345), 0);
  EXPECT_THAT(UnixSocket::Claim(folder.File("s")), IsInvalid("unix_socket"));
  EXPECT_TRUE(folder.Names().empty());
}

TEST(UnixSocketTest, FolderThatCannotBeMadeIsRefused) {
  EXPECT_THAT(UnixSocket::Claim("/proc/quire/s"), IsInvalid("unix_socket"));
}

}  // namespace
}  // namespace quire
