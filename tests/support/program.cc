#include "tests/support/program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

#include "tests/support/spawn.h"

namespace quire {
namespace {

constexpr auto kLookAgain = std::chrono::milliseconds(5);

int SpawnWithOutput(const std::vector<std::string>& arguments, const std::string& file) {
  return Spawn(arguments, [&file](posix_spawn_file_actions_t* actions) {
    posix_spawn_file_actions_addopen(actions, STDOUT_FILENO, file.c_str(),
                                     O_WRONLY | O_CREAT | O_APPEND, 0600);
    posix_spawn_file_actions_adddup2(actions, STDOUT_FILENO, STDERR_FILENO);
  });
}

}  // namespace

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Program::Program(const std::vector<std::string>& arguments)
    : pid_(SpawnWithOutput(arguments, folder_.File("out"))) {}

Program::Program(Program&& other) noexcept
    : folder_(std::move(other.folder_)),
      pid_(std::exchange(other.pid_, 0)),
      exit_code_(other.exit_code_) {}

Program::~Program() {
  if (pid_ != 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
}

void Program::Signal(int number) const {
  if (pid_ != 0) kill(pid_, number);
}

int Program::Child() const {
  const std::string number = std::to_string(pid_);
  const std::string path = "/proc/" + number + "/task/" + number + "/children";
  for (int tries = 0; tries < 2000; ++tries) {
    std::istringstream children(ReadFile(path));
    int child = 0;
    if (children >> child) return child;
    std::this_thread::sleep_for(kLookAgain);
  }
  ADD_FAILURE() << "process " << pid_ << " has no child";
  return 0;
}

void SignalProcess(int pid, int number) {
  if (pid > 0) kill(pid, number);
}

std::string Program::output() const { return ReadFile(folder_.File("out")); }

bool Program::Ended() {
  if (pid_ == 0) return true;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return false;
  pid_ = 0;
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return true;
}

bool Program::WaitFor(const std::string& text) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (std::chrono::steady_clock::now() < deadline) {
    const bool ended = Ended();
    if (output().find(text) != std::string::npos) return true;
    if (ended) return false;
    std::this_thread::sleep_for(kLookAgain);
  }
  return false;
}

bool Program::EndsWithin(std::chrono::milliseconds time) {
  const auto deadline = std::chrono::steady_clock::now() + time;
  while (!Ended()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(kLookAgain);
  }
  return true;
}

ProgramResult Program::Wait() {
  while (!Ended()) std::this_thread::sleep_for(kLookAgain);
  return {exit_code_, output()};
}

ProgramResult RunProgram(const std::vector<std::string>& arguments) {
  return Program(arguments).Wait();
}

}  // namespace quire
