// Addresses to listen on, HOST:PORT, and what is wrong with them.
#ifndef QUIRE_CACHE_SERVICE_BASE_TCP_ADDRESS_H_
#define QUIRE_CACHE_SERVICE_BASE_TCP_ADDRESS_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace quire {

// Errors: INVALID_ARGUMENT for `field` unless the address is HOST:PORT or [IPV6]:PORT.
absl::Status CheckTcpAddress(std::string_view field, const std::string& address);

// Whether this machine and user may listen there; a port that is in use is no mistake. Errors:
// INVALID_ARGUMENT for `field`.
absl::Status CheckCanBind(std::string_view field, const std::string& address);

// The address with a numeric host, the first that may be used. Errors: INVALID_ARGUMENT for
// `field`.
absl::StatusOr<std::string> NumericAddress(std::string_view field, const std::string& address,
                                           bool may_be_ipv6);

// Whether two listeners would take the same port of the same address of this machine; port 0 is
// always another one.
bool Collide(const std::string& a, const std::string& b);

// INVALID_ARGUMENT for `field`: why a library that says little could not listen there, found out by
// trying once more.
absl::Status CannotListen(std::string_view field, const std::string& address);

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_BASE_TCP_ADDRESS_H_
