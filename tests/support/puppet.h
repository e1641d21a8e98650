// A worker process that a test leads by the hand; see puppet_worker.cc for its commands.
#ifndef QUIRE_TESTS_SUPPORT_PUPPET_H_
#define QUIRE_TESTS_SUPPORT_PUPPET_H_

#include <chrono>
#include <string>
#include <vector>

namespace quire {

struct PuppetOptions {
  std::string name = "w";
  uint64_t incarnation = 1;
  std::chrono::milliseconds lease{30'000};
};

// Killed at destruction. Not thread-safe.
class Puppet {
 public:
  // Attaches; greeting() is what came of it.
  explicit Puppet(const std::string& server, const PuppetOptions& options = {});
  ~Puppet();
  Puppet(const Puppet&) = delete;
  Puppet& operator=(const Puppet&) = delete;

  // "ok BLOCKS", "ok BLOCKS resumed", or the reason.
  const std::string& greeting() const { return greeting_; }

  // Sends a command and waits for its answer, at most 30 s ("silent").
  std::string Do(const std::string& command);
  // The two halves of it, for a process that is stopped or hangs.
  void Send(const std::string& command);
  std::string Receive(std::chrono::milliseconds timeout = std::chrono::seconds(30));
  // Block ids at the end of the answer.
  std::vector<int> Blocks(const std::string& command);

  int pid() const { return pid_; }

  void Signal(int number) const;
  // kill -9, and waits until the process is gone.
  void Kill();

 private:
  int pid_ = 0;
  int socket_ = -1;
  std::string buffer_;
  std::string greeting_;
};

// "1 2 3", for commands that take blocks.
std::string Words(const std::vector<int>& numbers);

}  // namespace quire

#endif  // QUIRE_TESTS_SUPPORT_PUPPET_H_
