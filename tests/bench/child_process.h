// A server in a process of its own, ended with its owner.
#ifndef QUIRE_TESTS_BENCH_CHILD_PROCESS_H_
#define QUIRE_TESTS_BENCH_CHILD_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <vector>

namespace quire::bench {

// Not thread-safe.
class ChildProcess {
 public:
  // Starts `command` and waits until it prints a line with "tcp_port=N". A program that does not
  // start ends this one, with a message.
  explicit ChildProcess(const std::vector<std::string>& command);
  // Sends SIGTERM, after a second SIGKILL, and waits.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  int tcp_port() const { return tcp_port_; }

  pid_t pid() const { return pid_; }

  // CPU time of all its threads so far.
  double CpuSeconds() const;
  // Resident set now.
  uint64_t ResidentBytes() const;

 private:
  void ReadUntilReady(int output);

  pid_t pid_ = -1;
  clockid_t cpu_clock_ = 0;
  int output_ = -1;
  int tcp_port_ = 0;
};

// Runs `command` to its end, its output left out. A failure of it ends this program, with a
// message.
void RunToEnd(const std::vector<std::string>& command);

}  // namespace quire::bench

#endif  // QUIRE_TESTS_BENCH_CHILD_PROCESS_H_
