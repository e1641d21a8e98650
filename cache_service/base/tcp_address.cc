#include "cache_service/base/tcp_address.h"

#include <netdb.h>
#include <netinet/in.h>
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

uint16_t PortOf(const addrinfo& where) {
  return ntohs(where.ai_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6*>(where.ai_addr)->sin6_port
                   : reinterpret_cast<const sockaddr_in*>(where.ai_addr)->sin_port);
}

// The bytes of the address.
std::string_view HostOf(const addrinfo& where) {
  if (where.ai_family == AF_INET6) {
    const auto& host = reinterpret_cast<const sockaddr_in6*>(where.ai_addr)->sin6_addr;
    return {reinterpret_cast<const char*>(&host), sizeof(host)};
  }
  const auto& host = reinterpret_cast<const sockaddr_in*>(where.ai_addr)->sin_addr;
  return {reinterpret_cast<const char*>(&host), sizeof(host)};
}

bool IsAny(const addrinfo& where) {
  return HostOf(where).find_first_not_of('\0') == std::string_view::npos;
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
  // Listeners disagree about signs and spaces.
  const bool digits = parts.port.find_first_not_of("0123456789") == std::string::npos;
  if (!parts.host.empty() && digits && absl::SimpleAtoi(parts.port, &port) && port <= 65535) {
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

absl::StatusOr<std::string> NumericAddress(std::string_view field, const std::string& address,
                                           bool may_be_ipv6) {
  std::string problem = "not an IPv4 address, and this listener takes no other";
  const AddressList list = Resolve(address, problem);
  for (const addrinfo* where = list.get(); where != nullptr; where = where->ai_next) {
    if (where->ai_family == AF_INET6 && !may_be_ipv6) continue;
    char host[NI_MAXHOST] = {};
    if (getnameinfo(where->ai_addr, where->ai_addrlen, host, sizeof(host), nullptr, 0,
                    NI_NUMERICHOST) != 0) {
      continue;
    }
    const bool brackets = where->ai_family == AF_INET6;
    return absl::StrCat(brackets ? "[" : "", host, brackets ? "]:" : ":", PortOf(*where));
  }
  return Refused(field, address, problem);
}

bool Collide(const std::string& a, const std::string& b) {
  std::string problem;
  const AddressList first = Resolve(a, problem);
  const AddressList second = Resolve(b, problem);
  for (const addrinfo* one = first.get(); one != nullptr; one = one->ai_next) {
    for (const addrinfo* two = second.get(); two != nullptr; two = two->ai_next) {
      if (PortOf(*one) == 0 || PortOf(*one) != PortOf(*two)) continue;
      // gRPC listens to both families where it is told to listen to all of one.
      if (IsAny(*one) || IsAny(*two) || HostOf(*one) == HostOf(*two)) return true;
    }
  }
  return false;
}

absl::Status CannotListen(std::string_view field, const std::string& address) {
  return Refused(field, address, ListenProblem(address));
}

}  // namespace quire
