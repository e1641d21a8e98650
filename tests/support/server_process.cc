#include "tests/support/server_process.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <utility>

namespace quire {

ServerProcess::ServerProcess(std::vector<std::string> flags) : flags_(std::move(flags)) { Start(); }

ServerProcess::~ServerProcess() { Kill(); }

void ServerProcess::Start() {
  std::vector<std::string> arguments = {QUIRE_SERVER, "--unix_socket=" + folder_.File("s"),
                                        "--metrics_address=none"};
  const bool has_files = std::ranges::find(flags_, "--memory=worker") == flags_.end();
  if (has_files) arguments.push_back("--memory_directory=" + folder_.path());
  arguments.insert(arguments.end(), flags_.begin(), flags_.end());
  program_.emplace(arguments);
  ASSERT_TRUE(program_->WaitFor("quire-server ready")) << program_->output();
}

void ServerProcess::Kill() { program_.reset(); }

ProgramResult ServerProcess::Terminate() {
  program_->Signal(SIGTERM);
  ProgramResult result = program_->Wait();
  program_.reset();
  return result;
}

void ServerProcess::Restart() {
  Kill();
  Start();
}

std::string ServerProcess::PoolFile() const {
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    if (entry.is_regular_file() && entry.file_size() > (1u << 20)) return entry.path();
  }
  return "";
}

}  // namespace quire
