// The second process of the prefill-decode workload.
#ifndef QUIRE_WORKER_RUNTIME_PREFILL_PROCESS_H_
#define QUIRE_WORKER_RUNTIME_PREFILL_PROCESS_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace quire::runtime {

// This program again, told to compute prompts. Waits for the process at destruction.
class PrefillProcess {
 public:
  // `argv` is this process's command line; the other attaches as "<worker>-prefill".
  static absl::StatusOr<PrefillProcess> Start(const std::string& worker, char** argv);

  PrefillProcess(PrefillProcess&& other) noexcept
      : pid_(std::exchange(other.pid_, 0)), socket_(std::exchange(other.socket_, -1)) {}

  PrefillProcess& operator=(PrefillProcess&&) = delete;
  ~PrefillProcess();

  // Our end; the process ends when it is closed.
  int TakeSocket() { return std::exchange(socket_, -1); }

  // ABORTED if the process failed.
  absl::Status Wait();

 private:
  PrefillProcess(int pid, int socket) : pid_(pid), socket_(socket) {}

  int pid_;
  int socket_;
};

}  // namespace quire::runtime

#endif  // QUIRE_WORKER_RUNTIME_PREFILL_PROCESS_H_
