#ifndef QUIRE_CACHE_SERVICE_BASE_DEFAULT_SOCKET_H_
#define QUIRE_CACHE_SERVICE_BASE_DEFAULT_SOCKET_H_

#include <unistd.h>

#include <string>

namespace quire {

// Where the server listens, and its workers look for it, if nothing else is said.
inline std::string DefaultUnixSocket() {
  return "/tmp/quire-" + std::to_string(getuid()) + "/quire.sock";
}

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_BASE_DEFAULT_SOCKET_H_
