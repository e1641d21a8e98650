// Options of quire-server: flags, environment variables and a configuration file.
#ifndef QUIRE_CACHE_SERVICE_FLAGS_H_
#define QUIRE_CACHE_SERVICE_FLAGS_H_

#include "absl/status/statusor.h"
#include "quire/v1/server_config.pb.h"

namespace quire {

struct CommandLine {
  // Effective: with defaults.
  v1::ServerConfig config;
  // Only check and print the configuration.
  bool check_config = false;
  // Only ask the server on unix_socket whether it serves.
  bool check_health = false;
};

// Reads QUIRE_* variables, then flags, which win; both win over the configuration file. --help and
// --version end the process. Errors: INVALID_ARGUMENT naming the option, unknown ones included.
absl::StatusOr<CommandLine> ParseCommandLine(int argc, char** argv);

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_FLAGS_H_
