// The server's configuration: from message to checked options.
#ifndef QUIRE_CACHE_SERVICE_SERVER_CONFIG_H_
#define QUIRE_CACHE_SERVICE_SERVER_CONFIG_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cache_service/rpc/server.h"
#include "quire/v1/server_config.pb.h"

namespace quire {

// Text format. Errors: INVALID_ARGUMENT for config_file with line and column.
absl::StatusOr<v1::ServerConfig> ReadConfigFile(const std::string& path);

// Fills what is absent, so that the message says all that holds.
void FillDefaults(v1::ServerConfig& config);

// Of a configuration with defaults. Errors: INVALID_ARGUMENT naming the field and the limit.
absl::StatusOr<ServerOptions> ToServerOptions(const v1::ServerConfig& config, uint64_t epoch);

// Reads the files that the options name (tokens, certificate, key). Errors: INVALID_ARGUMENT naming
// the option.
absl::Status CheckFiles(const ServerOptions& options);

// Looks at the machine: whether sockets and pool files can be where they shall be, and whether the
// pools can fit into their folders at all. What a running server has taken is no mistake. Changes
// nothing. Errors: INVALID_ARGUMENT naming the option.
absl::Status CheckPlaces(const ServerOptions& options);

// A refusal for people: its message, then the names and numbers that the message lacks.
std::string Explain(const absl::Status& status);

// A random number that is not 0.
uint64_t NewEpoch();

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_SERVER_CONFIG_H_
