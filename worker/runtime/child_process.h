// Another process of the same worker.
#ifndef QUIRE_WORKER_RUNTIME_CHILD_PROCESS_H_
#define QUIRE_WORKER_RUNTIME_CHILD_PROCESS_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace quire::runtime {

// This program again, with a socket to it. Closes the socket and waits for the process at
// destruction.
class ChildProcess {
 public:
  // `argv` is this process's command line; `more`, given the child's end of the socket, the flags
  // that come on top. Descriptors without close-on-exec stay open in the child.
  static absl::StatusOr<ChildProcess> Start(
      char** argv, const std::function<std::vector<std::string>(int socket)>& more);

  ChildProcess(ChildProcess&& other) noexcept
      : pid_(std::exchange(other.pid_, 0)), socket_(std::exchange(other.socket_, -1)) {}

  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess();

  // Our end; the process is to end when it is closed.
  int TakeSocket() { return std::exchange(socket_, -1); }

  // ABORTED if the process failed.
  absl::Status Wait();
  void Kill();

 private:
  ChildProcess(int pid, int socket) : pid_(pid), socket_(socket) {}

  int pid_;
  int socket_;
};

}  // namespace quire::runtime

#endif  // QUIRE_WORKER_RUNTIME_CHILD_PROCESS_H_
