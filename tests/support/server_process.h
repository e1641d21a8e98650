// A real quire-server in a folder of its own, ended by its process id.
#ifndef QUIRE_TESTS_SUPPORT_SERVER_PROCESS_H_
#define QUIRE_TESTS_SUPPORT_SERVER_PROCESS_H_

#include <optional>
#include <string>
#include <vector>

#include "tests/support/program.h"
#include "tests/support/temp_folder.h"

namespace quire {

class ServerProcess {
 public:
  // Starts a server on a Unix socket, with pool files, if any, in the same folder. `flags` come on
  // top. Fails the test if it is not ready in time.
  explicit ServerProcess(std::vector<std::string> flags);
  // Kills it and removes the folder.
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  // "unix:/path", the same after Restart.
  std::string address() const { return "unix:" + folder_.File("s"); }

  const std::string& folder() const { return folder_.path(); }

  // False once it has ended, by itself or not.
  bool IsAlive() {
    return program_.has_value() && !program_->EndsWithin(std::chrono::milliseconds(0));
  }

  int pid() const { return program_.has_value() ? program_->pid() : 0; }

  // SIGKILL, then a new process with the same flags.
  void Restart();
  void Kill();
  // SIGTERM; returns once it has ended.
  ProgramResult Terminate();
  void Start();

  // Path of the pool file; empty before the first attach.
  std::string PoolFile() const;

 private:
  TempFolder folder_;
  std::vector<std::string> flags_;
  std::optional<Program> program_;
};

}  // namespace quire

#endif  // QUIRE_TESTS_SUPPORT_SERVER_PROCESS_H_
