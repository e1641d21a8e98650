#include "worker/runtime/line_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

namespace quire::runtime {

LineSocket::~LineSocket() { close(fd_); }

void LineSocket::LimitSends(int seconds) {
  const timeval limit{.tv_sec = seconds, .tv_usec = 0};
  setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

bool LineSocket::Send(const std::string& line) {
  const std::string message = line + "\n";
  for (size_t sent = 0; sent < message.size() && !closed_;) {
    const ssize_t count = send(fd_, message.data() + sent, message.size() - sent, MSG_NOSIGNAL);
    if (count <= 0) {
      closed_ = true;
    } else {
      sent += static_cast<size_t>(count);
    }
  }
  return !closed_;
}

std::optional<std::string> LineSocket::Receive(int timeout_ms) {
  for (;;) {
    if (const size_t end = buffer_.find('\n'); end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    pollfd waiting{fd_, POLLIN, 0};
    if (closed_ || poll(&waiting, 1, timeout_ms) <= 0) return std::nullopt;
    char bytes[4096];
    const ssize_t count = recv(fd_, bytes, sizeof(bytes), 0);
    if (count <= 0) {
      closed_ = true;
      return std::nullopt;
    }
    buffer_.append(bytes, static_cast<size_t>(count));
  }
}

bool LineSocket::HasPeer() const {
  pollfd state{fd_, POLLRDHUP, 0};
  return !closed_ && poll(&state, 1, 0) == 0;
}

}  // namespace quire::runtime
