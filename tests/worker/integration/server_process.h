// A real quire-server in a folder of its own, ended by its process id.
#ifndef QUIRE_TESTS_WORKER_INTEGRATION_SERVER_PROCESS_H_
#define QUIRE_TESTS_WORKER_INTEGRATION_SERVER_PROCESS_H_

#include <string>
#include <vector>

namespace quire {

// Output and exit code of a finished program; the error stream is part of the output.
struct ProgramResult {
  int exit_code = -1;
  std::string output{};
};

// Runs a program to its end.
ProgramResult RunProgram(const std::vector<std::string>& arguments);

class ServerProcess {
 public:
  // Starts a server on a Unix socket, with pool files in the same folder. `flags` come on top.
  // Fails the test if it is not ready in time.
  explicit ServerProcess(std::vector<std::string> flags);
  // Kills it and removes the folder.
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  // "unix:/path", the same after Restart.
  std::string address() const { return "unix:" + folder_ + "/s"; }

  int pid() const { return pid_; }

  // SIGKILL, then a new process with the same flags.
  void Restart();
  void Kill();
  void Start();

  // Path of the pool file; empty before the first attach.
  std::string PoolFile() const;

 private:
  bool WaitUntilReady() const;

  std::string folder_;
  std::vector<std::string> flags_;
  int pid_ = 0;
};

}  // namespace quire

#endif  // QUIRE_TESTS_WORKER_INTEGRATION_SERVER_PROCESS_H_
