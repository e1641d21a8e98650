#include "tests/bench/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace quire::bench {
namespace {

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "quire-bench: %s\n", what.c_str());
  std::exit(2);
}

// Ends with the parent, also if that one is killed.
pid_t Start(const std::vector<std::string>& command, int output) {
  std::vector<char*> arguments;
  for (const std::string& part : command) arguments.push_back(const_cast<char*>(part.c_str()));
  arguments.push_back(nullptr);
  const pid_t pid = vfork();
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  dup2(output, STDOUT_FILENO);
  execv(arguments[0], arguments.data());
  _exit(127);
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& command) {
  int pipe_ends[2];
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) Die("no pipe");
  pid_ = Start(command, pipe_ends[1]);
  close(pipe_ends[1]);
  if (pid_ < 0) Die("cannot start " + command[0]);
  output_ = pipe_ends[0];
  ReadUntilReady(output_);
  if (tcp_port_ == 0) Die(command[0] + " did not become ready");
  if (clock_getcpuclockid(pid_, &cpu_clock_) != 0) Die("no CPU clock of " + command[0]);
}

void ChildProcess::ReadUntilReady(int output) {
  std::string text;
  char byte = 0;
  while (read(output, &byte, 1) == 1) {
    if (byte != '\n') {
      text += byte;
      continue;
    }
    if (const size_t at = text.find("tcp_port=");
        text.find("ready") != std::string::npos && at != std::string::npos) {
      tcp_port_ = std::atoi(text.c_str() + at + 9);
      return;
    }
    text.clear();
  }
}

ChildProcess::~ChildProcess() {
  kill(pid_, SIGTERM);
  for (int tenth = 0; waitpid(pid_, nullptr, WNOHANG) == 0; ++tenth) {
    if (tenth == 10) kill(pid_, SIGKILL);
    usleep(100'000);
  }
  close(output_);
}

double ChildProcess::CpuSeconds() const {
  timespec time{};
  clock_gettime(cpu_clock_, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

uint64_t ChildProcess::ResidentBytes() const {
  std::ifstream file("/proc/" + std::to_string(pid_) + "/statm");
  uint64_t pages = 0;
  uint64_t resident = 0;
  file >> pages >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

void RunToEnd(const std::vector<std::string>& command) {
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  const pid_t pid = Start(command, nowhere);
  int status = 0;
  const bool ended = pid > 0 && waitpid(pid, &status, 0) == pid;
  close(nowhere);
  if (!ended || status != 0) Die(command[0] + " failed");
}

}  // namespace quire::bench
