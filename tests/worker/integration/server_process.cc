#include "tests/worker/integration/server_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

namespace quire {
namespace {

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Starts a program whose output goes to a file; returns its process id.
int Spawn(const std::vector<std::string>& arguments, const std::string& output) {
  std::vector<std::string> copies = arguments;
  std::vector<char*> argv;
  for (std::string& argument : copies) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t pid = 0;
  const int failed = posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  EXPECT_EQ(failed, 0) << argv[0];
  return failed == 0 ? pid : 0;
}

std::string TempFolder() {
  char name[] = "/tmp/qwXXXXXX";
  return mkdtemp(name);
}

}  // namespace

ProgramResult RunProgram(const std::vector<std::string>& arguments) {
  const std::string folder = TempFolder();
  const int pid = Spawn(arguments, folder + "/out");
  int status = 0;
  waitpid(pid, &status, 0);
  ProgramResult result{WIFEXITED(status) ? WEXITSTATUS(status) : -1, ReadAll(folder + "/out")};
  std::filesystem::remove_all(folder);
  return result;
}

ServerProcess::ServerProcess(std::vector<std::string> flags)
    : folder_(TempFolder()), flags_(std::move(flags)) {
  Start();
}

ServerProcess::~ServerProcess() {
  Kill();
  std::filesystem::remove_all(folder_);
}

void ServerProcess::Start() {
  std::filesystem::remove(folder_ + "/log");
  std::vector<std::string> arguments = {QUIRE_SERVER, "--unix_socket=" + folder_ + "/s",
                                        "--metrics_address=none", "--memory_directory=" + folder_};
  arguments.insert(arguments.end(), flags_.begin(), flags_.end());
  pid_ = Spawn(arguments, folder_ + "/log");
  ASSERT_TRUE(WaitUntilReady()) << ReadAll(folder_ + "/log");
}

bool ServerProcess::WaitUntilReady() const {
  for (int i = 0; i < 3000; ++i) {
    if (ReadAll(folder_ + "/log").find("quire-server ready") != std::string::npos) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

void ServerProcess::Kill() {
  if (pid_ == 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = 0;
}

void ServerProcess::Restart() {
  Kill();
  Start();
}

std::string ServerProcess::PoolFile() const {
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    if (entry.is_regular_file() && entry.file_size() > (1u << 20)) return entry.path();
  }
  return "";
}

}  // namespace quire
