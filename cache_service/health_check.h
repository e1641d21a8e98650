// Asks a running server whether it serves; for probes of containers.
#ifndef QUIRE_CACHE_SERVICE_HEALTH_CHECK_H_
#define QUIRE_CACHE_SERVICE_HEALTH_CHECK_H_

#include <string>

#include "absl/status/status.h"
#include "cache_service/base/clock.h"

namespace quire {

// Calls grpc.health.v1.Health/Check for the whole server through its Unix socket. UNAVAILABLE if it
// does not answer within the timeout or does not serve (a draining server).
absl::Status CheckHealth(const std::string& unix_socket, Duration timeout);

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_HEALTH_CHECK_H_
