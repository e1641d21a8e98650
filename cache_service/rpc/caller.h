// Who calls, and what that caller may do.
#ifndef QUIRE_CACHE_SERVICE_RPC_CALLER_H_
#define QUIRE_CACHE_SERVICE_RPC_CALLER_H_

#include <optional>
#include <string>

#include "absl/status/status.h"

namespace quire {

struct Caller {
  // Absent: may act for every tenant. Leases are good for the tenant that attached.
  std::optional<std::string> tenant;
  bool is_admin = false;
};

// The tenant that a request which names `requested` acts for: the caller's own, if it has one.
// Errors: PERMISSION_DENIED for another tenant than that.
absl::Status ResolveTenant(const Caller& caller, const std::string& requested, std::string* tenant);

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_RPC_CALLER_H_
