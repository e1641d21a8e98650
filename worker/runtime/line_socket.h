// Lines of text between two processes of one worker.
#ifndef QUIRE_WORKER_RUNTIME_LINE_SOCKET_H_
#define QUIRE_WORKER_RUNTIME_LINE_SOCKET_H_

#include <optional>
#include <string>

namespace quire::runtime {

// Lines over a stream socket. Owns the descriptor. Not thread-safe.
class LineSocket {
 public:
  explicit LineSocket(int fd) : fd_(fd) {}

  ~LineSocket();
  LineSocket(const LineSocket&) = delete;
  LineSocket& operator=(const LineSocket&) = delete;

  // False: the other side is gone.
  bool Send(const std::string& line);
  // The next line, or nothing within the time (negative: wait for ever).
  std::optional<std::string> Receive(int timeout_ms);

  // From now on the other side is gone, too, if it takes nothing of a message for so many seconds.
  void LimitSends(int seconds);

  bool closed() const { return closed_; }

  // Whether the other side is there, without reading what it sent.
  bool HasPeer() const;

 private:
  int fd_;
  std::string buffer_;
  bool closed_ = false;
};

}  // namespace quire::runtime

#endif  // QUIRE_WORKER_RUNTIME_LINE_SOCKET_H_
