#include "tests/support/puppet.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sstream>

#include "tests/support/spawn.h"

namespace quire {
Puppet::Puppet(const std::string& server, const PuppetOptions& options) {
  int ends[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  socket_ = ends[0];
  pid_ = Spawn({QUIRE_PUPPET, server, options.name, std::to_string(options.incarnation),
                std::to_string(options.lease.count())},
               [end = ends[1]](posix_spawn_file_actions_t* actions) {
                 posix_spawn_file_actions_adddup2(actions, end, STDIN_FILENO);
                 posix_spawn_file_actions_adddup2(actions, end, STDOUT_FILENO);
               });
  close(ends[1]);
  greeting_ = Receive();
}

Puppet::~Puppet() {
  Kill();
  close(socket_);
}

void Puppet::Kill() {
  if (pid_ == 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = 0;
}

void Puppet::Signal(int number) const {
  if (pid_ != 0) kill(pid_, number);
}

std::string Puppet::Do(const std::string& command) {
  Send(command);
  return Receive();
}

void Puppet::Send(const std::string& command) {
  const std::string line = command + "\n";
  EXPECT_EQ(send(socket_, line.data(), line.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(line.size()));
}

std::string Puppet::Receive(std::chrono::milliseconds timeout) {
  for (;;) {
    if (const size_t end = buffer_.find('\n'); end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    pollfd waiting{socket_, POLLIN, 0};
    if (poll(&waiting, 1, static_cast<int>(timeout.count())) <= 0) return "silent";
    char bytes[4096];
    const ssize_t count = recv(socket_, bytes, sizeof(bytes), 0);
    if (count <= 0) return "gone";
    buffer_.append(bytes, static_cast<size_t>(count));
  }
}

std::vector<int> Puppet::Blocks(const std::string& command) {
  const std::string answer = Do(command);
  const size_t at = answer.find("blocks");
  EXPECT_NE(at, std::string::npos) << command << ": " << answer;
  if (at == std::string::npos) return {};
  std::istringstream in(answer.substr(at + 6));
  std::vector<int> blocks;
  for (int block = 0; in >> block;) blocks.push_back(block);
  return blocks;
}

std::string Words(const std::vector<int>& numbers) {
  std::string text;
  for (const int number : numbers) text += (text.empty() ? "" : " ") + std::to_string(number);
  return text;
}

}  // namespace quire
