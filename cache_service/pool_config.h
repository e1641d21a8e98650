// The configuration of one pool: from message to checked options.
#ifndef QUIRE_CACHE_SERVICE_POOL_CONFIG_H_
#define QUIRE_CACHE_SERVICE_POOL_CONFIG_H_

#include <sys/types.h>

#include <string>

#include "absl/status/statusor.h"
#include "cache_service/rpc/server.h"
#include "quire/v1/server_config.pb.h"

namespace quire {

void FillDefaults(v1::PoolConfig& config);

// Of a configuration with defaults. Errors: INVALID_ARGUMENT naming the field and the limit.
absl::StatusOr<PoolSetup> ToPoolSetup(const v1::PoolConfig& config, uint64_t epoch);

// Octal permissions. Errors: INVALID_ARGUMENT for `field`.
absl::StatusOr<mode_t> ParseMode(const char* field, const std::string& text);

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_POOL_CONFIG_H_
