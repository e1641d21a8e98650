#include "worker/runtime/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace quire::runtime {

absl::StatusOr<ChildProcess> ChildProcess::Start(
    char** argv, const std::function<std::vector<std::string>(int socket)>& more) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) {
    return absl::ErrnoToStatus(errno, "cannot make a socket pair");
  }
  fcntl(ends[0], F_SETFD, FD_CLOEXEC);
  std::vector<std::string> flags = more(ends[1]);
  std::vector<char*> arguments;
  for (char** argument = argv; *argument != nullptr; ++argument) arguments.push_back(*argument);
  for (std::string& flag : flags) arguments.push_back(flag.data());
  arguments.push_back(nullptr);
  pid_t pid = 0;
  const int failed =
      posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr, arguments.data(), environ);
  close(ends[1]);
  if (failed != 0) {
    close(ends[0]);
    return absl::ErrnoToStatus(failed, "cannot start a process");
  }
  return ChildProcess(pid, ends[0]);
}

ChildProcess::~ChildProcess() {
  if (socket_ >= 0) close(socket_);
  Wait().IgnoreError();
}

absl::Status ChildProcess::Wait() {
  const int pid = std::exchange(pid_, 0);
  if (pid == 0) return absl::OkStatus();
  int status = 0;
  waitpid(pid, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  return absl::AbortedError("the second process failed");
}

void ChildProcess::Kill() {
  if (pid_ != 0) kill(pid_, SIGKILL);
  Wait().IgnoreError();
}

}  // namespace quire::runtime
