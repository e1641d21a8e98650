#include "worker/runtime/prefill_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "absl/strings/str_cat.h"

namespace quire::runtime {

absl::StatusOr<PrefillProcess> PrefillProcess::Start(const std::string& worker, char** argv) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) {
    return absl::ErrnoToStatus(errno, "cannot make a socket pair");
  }
  fcntl(ends[0], F_SETFD, FD_CLOEXEC);
  std::string fd_flag = absl::StrCat("--prefill_fd=", ends[1]);
  std::string name_flag = absl::StrCat("--name=", worker, "-prefill");
  std::vector<char*> arguments;
  for (char** argument = argv; *argument != nullptr; ++argument) arguments.push_back(*argument);
  arguments.insert(arguments.end(), {name_flag.data(), fd_flag.data(), nullptr});
  pid_t pid = 0;
  const int failed =
      posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr, arguments.data(), environ);
  close(ends[1]);
  if (failed != 0) {
    close(ends[0]);
    return absl::ErrnoToStatus(failed, "cannot start the prefill process");
  }
  return PrefillProcess(pid, ends[0]);
}

PrefillProcess::~PrefillProcess() {
  if (socket_ >= 0) close(socket_);
  Wait().IgnoreError();
}

absl::Status PrefillProcess::Wait() {
  const int pid = std::exchange(pid_, 0);
  if (pid == 0) return absl::OkStatus();
  int status = 0;
  waitpid(pid, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  return absl::AbortedError("the prefill process failed");
}

}  // namespace quire::runtime
