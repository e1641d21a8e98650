#include "cache_service/base/tcp_address.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cache_service/base/error.h"

namespace quire {
namespace {

struct HostAndPort {
  std::string host;
  std::string port;
};

// Nothing to split: both empty.
HostAndPort Split(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return {};
  HostAndPort parts{address.substr(0, colon), address.substr(colon + 1)};
  if (parts.host.starts_with('[') && parts.host.ends_with(']')) {
    parts.host = parts.host.substr(1, parts.host.size() - 2);
  }
  return parts;
}

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

// Null with the problem if there is no such host.
AddressList Resolve(const std::string& address, std::string& problem) {
  const HostAndPort parts = Split(address);
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(parts.host.c_str(), parts.port.c_str(), &hints, &list);
  if (error != 0) problem = gai_strerror(error);
  return AddressList(error == 0 ? list : nullptr, freeaddrinfo);
}

// 0, or the error of binding, and of listening if asked for.
int BindError(const addrinfo& where, bool listens) {
  const int fd = socket(where.ai_family, where.ai_socktype | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  const bool can =
      bind(fd, where.ai_addr, where.ai_addrlen) == 0 && (!listens || listen(fd, 1) == 0);
  const int error = can ? 0 : errno;
  close(fd);
  return error;
}

std::string ListenProblem(const std::string& address) {
  std::string problem;
  const AddressList list = Resolve(address, problem);
  if (list == nullptr) return problem;
  const int error = BindError(*list, /*listens=*/true);
  return error == 0 ? "not an address that this listener takes"
                    : std::generic_category().message(error);
}

absl::Status Refused(std::string_view field, const std::string& address,
                     const std::string& problem) {
  return ToStatus(InvalidArgument(field, absl::StrCat("cannot listen on ", address, ": ", problem),
                                  {{"address", address}}));
}

}  // namespace

absl::Status CheckTcpAddress(std::string_view field, const std::string& address) {
  const HostAndPort parts = Split(address);
  int port = -1;
  if (!parts.host.empty() && absl::SimpleAtoi(parts.port, &port) && port >= 0 && port <= 65535) {
    return absl::OkStatus();
  }
  return ToStatus(InvalidArgument(field, absl::StrCat(address, ": not HOST:PORT"),
                                  {{"address", address}, {"limit", 65535}}));
}

absl::Status CheckCanBind(std::string_view field, const std::string& address) {
  std::string problem;
  const AddressList list = Resolve(address, problem);
  if (list == nullptr) return Refused(field, address, problem);
  const int error = BindError(*list, /*listens=*/false);
  if (error == 0 || error == EADDRINUSE) return absl::OkStatus();
  return Refused(field, address, std::generic_category().message(error));
}

absl::Status CannotListen(std::string_view field, const std::string& address) {
  return Refused(field, address, ListenProblem(address));
}

}  // namespace quire
