#include "worker/runtime/flag_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "worker/runtime/flag_values.h"

namespace quire::runtime {
namespace {

// 0, or the error of opening. O_NONBLOCK: a pipe without a reader yet must not hold the start up.
int OpenError(const std::string& path, int how) {
  const int fd = open(path.c_str(), how | O_NONBLOCK | O_CLOEXEC, 0644);
  if (fd < 0) return errno;
  // A folder opens, but cannot be read.
  const int error = how == O_RDONLY && read(fd, nullptr, 0) != 0 ? errno : 0;
  close(fd);
  return error;
}

absl::Status Cannot(std::string_view flag, const char* what, const std::string& path, int error) {
  return BadFlag(
      flag, absl::StrCat("cannot ", what, " ", path, ": ", std::generic_category().message(error)));
}

}  // namespace

absl::Status CheckWritable(std::string_view flag, const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  int error = OpenError(path, O_WRONLY | O_CREAT | O_EXCL);
  if (error == 0) {
    unlink(path.c_str());
    return absl::OkStatus();
  }
  if (error == EEXIST) error = OpenError(path, O_WRONLY);
  // A pipe that nobody reads yet.
  if (error == 0 || error == ENXIO) return absl::OkStatus();
  return Cannot(flag, "write", path, error);
}

absl::Status CheckReadable(std::string_view flag, const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  const int error = OpenError(path, O_RDONLY);
  return error == 0 ? absl::OkStatus() : Cannot(flag, "read", path, error);
}

}  // namespace quire::runtime
