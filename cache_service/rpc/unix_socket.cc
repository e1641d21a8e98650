#include "cache_service/rpc/unix_socket.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "cache_service/base/error.h"

namespace quire {
namespace {

absl::Status SocketError(const std::string& path, const std::string& problem) {
  return ToStatus(
      InvalidArgument("unix_socket", absl::StrCat(path, ": ", problem), {{"path", path}}));
}

std::string ErrnoText(int error) { return std::generic_category().message(error); }

std::string FolderOf(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder;
}

// 0, or the error of making a socket there; it is removed again. Permissions do not tell: not every
// file system takes sockets.
int MakingError(int folder) {
  // By the descriptor, because the folder's path may fill the address.
  const std::string probe = absl::StrCat("/proc/self/fd/", folder, "/.quire-probe-", getpid());
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  probe.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool made = bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  const int error = made ? 0 : errno;
  if (made) unlink(probe.c_str());
  close(fd);
  return error;
}

absl::Status CheckWritable(const std::string& path, const std::string& folder) {
  const int fd = open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  const int error = fd < 0 ? errno : MakingError(fd);
  if (fd >= 0) close(fd);
  if (error == 0) return absl::OkStatus();
  return SocketError(path,
                     absl::StrCat("cannot make a socket in ", folder, ": ", ErrnoText(error)));
}

// Whoever owns the folder can put another socket in place of this one.
absl::Status CheckFolder(const std::string& path) {
  const std::string folder = FolderOf(path);
  struct stat info = {};
  if (stat(folder.c_str(), &info) != 0) {
    if (errno == ENOENT) return CheckWritable(path, FolderOf(folder));
    return SocketError(path, absl::StrCat("cannot look into its folder: ", ErrnoText(errno)));
  }
  if (!S_ISDIR(info.st_mode)) return SocketError(path, absl::StrCat(folder, " is no folder"));
  if (info.st_uid != 0 && info.st_uid != getuid()) {
    return SocketError(path, absl::StrCat("its folder belongs to user ", info.st_uid));
  }
  return CheckWritable(path, folder);
}

absl::Status MakeFolder(const std::string& path) {
  if (mkdir(FolderOf(path).c_str(), 0700) == 0 || errno == EEXIST) return absl::OkStatus();
  return SocketError(path, absl::StrCat("cannot make its folder: ", ErrnoText(errno)));
}

// Only a socket is ever removed; anything else at the path is somebody's file.
absl::Status CheckIsSocket(const std::string& path) {
  struct stat info = {};
  if (lstat(path.c_str(), &info) != 0 || S_ISSOCK(info.st_mode)) return absl::OkStatus();
  return SocketError(path, "exists and is not a socket");
}

// Whether a program listens there.
bool IsServed(const std::string& path) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const bool served =
      connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 ||
      errno == EAGAIN;
  close(fd);
  return served;
}

// The lock is held, so that no Quire server listens.
absl::Status RemoveDeadSocket(const std::string& path) {
  if (absl::Status status = CheckIsSocket(path); !status.ok()) return status;
  if (IsServed(path)) return SocketError(path, "another program listens there");
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  return SocketError(path, absl::StrCat("cannot remove: ", ErrnoText(errno)));
}

std::string LockPath(const std::string& path) { return path + ".lock"; }

absl::Status CheckLockFile(const std::string& path) {
  struct stat info = {};
  const std::string lock_path = LockPath(path);
  if (lstat(lock_path.c_str(), &info) != 0) return absl::OkStatus();
  if (!S_ISREG(info.st_mode)) {
    return SocketError(path, absl::StrCat(lock_path, " exists and is not a file"));
  }
  if (access(lock_path.c_str(), R_OK | W_OK) == 0) return absl::OkStatus();
  return SocketError(path, absl::StrCat("cannot open ", lock_path, ": ", ErrnoText(errno)));
}

// Whether the open file is still the one of that name.
bool HasName(int fd, const std::string& path) {
  struct stat opened = {};
  struct stat named = {};
  return fstat(fd, &opened) == 0 && lstat(path.c_str(), &named) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

// The lock file, open and locked.
absl::StatusOr<int> TakeLock(const std::string& path) {
  const std::string lock_path = LockPath(path);
  while (true) {
    const int fd = open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
      return SocketError(path, absl::StrCat("cannot open ", lock_path, ": ", ErrnoText(errno)));
    }
    const bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (locked && HasName(fd, lock_path)) return fd;
    close(fd);
    if (!locked) return SocketError(path, "another server serves this socket");
    // Its owner removed it between open and lock.
  }
}

}  // namespace

absl::Status UnixSocket::CheckPath(const std::string& path) {
  if (path.size() > kMaxPathBytes) {
    return ToStatus(InvalidArgument(
        "unix_socket",
        absl::StrCat("path of ", path.size(), " bytes, at most ", kMaxPathBytes, ": ", path),
        {{"given", path.size()}, {"limit", kMaxPathBytes}, {"unit", "bytes"}}));
  }
  if (!path.empty() && absl::StripAsciiWhitespace(path).empty()) {
    return SocketError(path, "blank");
  }
  // "unix:PATH" is a URI, of which '?' and '#' end the path.
  if (path.find_first_of("%?#") == std::string::npos) return absl::OkStatus();
  return SocketError(path, "has one of % ? #, which mean something else in an address");
}

absl::Status UnixSocket::Check(const std::string& path) {
  if (absl::Status status = CheckPath(path); !status.ok()) return status;
  if (absl::Status status = CheckFolder(path); !status.ok()) return status;
  if (absl::Status status = CheckLockFile(path); !status.ok()) return status;
  return CheckIsSocket(path);
}

absl::StatusOr<std::unique_ptr<UnixSocket>> UnixSocket::Claim(const std::string& path) {
  if (absl::Status status = CheckPath(path); !status.ok()) return status;
  if (absl::Status status = MakeFolder(path); !status.ok()) return status;
  // Of the folder that is there now, whoever made it.
  if (absl::Status status = Check(path); !status.ok()) return status;
  const absl::StatusOr<int> lock_fd = TakeLock(path);
  if (!lock_fd.ok()) return lock_fd.status();
  std::unique_ptr<UnixSocket> socket(new UnixSocket(path, *lock_fd));
  if (absl::Status status = RemoveDeadSocket(path); !status.ok()) return status;
  return socket;
}

UnixSocket::~UnixSocket() {
  unlink(LockPath(path_).c_str());
  close(lock_fd_);
}

absl::Status UnixSocket::SetMode(mode_t mode) const {
  if (chmod(path_.c_str(), mode) == 0) return absl::OkStatus();
  return SocketError(path_, absl::StrCat("cannot set its mode: ", ErrnoText(errno)));
}

}  // namespace quire
