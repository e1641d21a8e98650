#include "cache_service/rpc/unix_socket.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cache_service/base/error.h"

namespace quire {
namespace {

absl::Status SocketError(const std::string& path, const std::string& problem) {
  return ToStatus(
      InvalidArgument("unix_socket", absl::StrCat(path, ": ", problem), {{"path", path}}));
}

std::string ErrnoText(int error) { return std::generic_category().message(error); }

// Whoever owns the folder can put another socket in place of this one.
absl::Status CheckOwner(const std::string& path, const std::string& folder) {
  struct stat info = {};
  if (stat(folder.c_str(), &info) != 0) {
    return SocketError(path, absl::StrCat("cannot look into its folder: ", ErrnoText(errno)));
  }
  if (info.st_uid == 0 || info.st_uid == getuid()) return absl::OkStatus();
  return SocketError(path, absl::StrCat("its folder belongs to user ", info.st_uid));
}

absl::Status MakeFolder(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) return absl::OkStatus();
  if (mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return CheckOwner(path, folder);
  return SocketError(path, absl::StrCat("cannot make its folder: ", ErrnoText(errno)));
}

// Only a socket is removed; anything else at the path is somebody's file.
absl::Status RemoveDeadSocket(const std::string& path) {
  struct stat info = {};
  if (lstat(path.c_str(), &info) != 0) return absl::OkStatus();
  if (!S_ISSOCK(info.st_mode)) return SocketError(path, "exists and is not a socket");
  if (unlink(path.c_str()) == 0) return absl::OkStatus();
  return SocketError(path, absl::StrCat("cannot remove: ", ErrnoText(errno)));
}

std::string LockPath(const std::string& path) { return path + ".lock"; }

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

Error UnixSocket::PathTooLong(const std::string& path) {
  return InvalidArgument(
      "unix_socket",
      absl::StrCat("path of ", path.size(), " bytes, at most ", kMaxPathBytes, ": ", path),
      {{"given_bytes", path.size()}, {"limit_bytes", kMaxPathBytes}});
}

absl::StatusOr<std::unique_ptr<UnixSocket>> UnixSocket::Claim(const std::string& path) {
  if (path.size() > kMaxPathBytes) return ToStatus(PathTooLong(path));
  if (absl::Status status = MakeFolder(path); !status.ok()) return status;
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
