// A Unix socket path that this process alone may serve.
#ifndef QUIRE_CACHE_SERVICE_RPC_UNIX_SOCKET_H_
#define QUIRE_CACHE_SERVICE_RPC_UNIX_SOCKET_H_

#include <sys/types.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace quire {

// Holds an exclusive lock on "PATH.lock" while it lives. gRPC by itself would let a second server
// take the path away from the first. An orderly end removes the lock file while the lock is held;
// who waits for it or opened it before finds that the name is gone and makes a new file.
class UnixSocket {
 public:
  // The kernel's limit, without the final zero byte.
  static constexpr size_t kMaxPathBytes = 107;

  // Length and characters: what the kernel and gRPC's addresses take. Errors: INVALID_ARGUMENT for
  // unix_socket.
  static absl::Status CheckPath(const std::string& path);

  // What Claim would refuse whether or not a server runs: a path too long, a folder that cannot be
  // made, takes no sockets or belongs to another user, something else than a socket at the path.
  // Changes nothing. Errors: INVALID_ARGUMENT for unix_socket.
  static absl::Status Check(const std::string& path);

  // Creates the folder with mode 0700 if it is absent and removes the socket of a dead server.
  // Errors: those of Check, and INVALID_ARGUMENT for unix_socket in use by another server or
  // another program.
  static absl::StatusOr<std::unique_ptr<UnixSocket>> Claim(const std::string& path);
  ~UnixSocket();
  UnixSocket(const UnixSocket&) = delete;
  UnixSocket& operator=(const UnixSocket&) = delete;

  std::string address() const { return "unix:" + path_; }

  const std::string& path() const { return path_; }

  // After the listener was started.
  absl::Status SetMode(mode_t mode) const;

 private:
  UnixSocket(std::string path, int lock_fd) : path_(std::move(path)), lock_fd_(lock_fd) {}

  const std::string path_;
  const int lock_fd_;
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_RPC_UNIX_SOCKET_H_
