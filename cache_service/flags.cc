#include "cache_service/flags.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "cache_service/base/command_line.h"
#include "cache_service/base/error.h"
#include "cache_service/config_fields.h"
#include "cache_service/server_config.h"

// Every flag is text; an empty one was not given. Each sets the field of its name in
// quire.v1.ServerConfig or quire.v1.PoolConfig, where the extremes of each are described.
#define QUIRE_FLAG(name, help) ABSL_FLAG(std::string, name, "", help)

ABSL_FLAG(std::string, config_file, "", "quire.v1.ServerConfig in protobuf text format.");
ABSL_FLAG(bool, check_config, false, "Check and print the configuration, then exit.");
ABSL_FLAG(bool, check_health, false,
          "Ask the server on --unix_socket whether it serves, then exit.");

QUIRE_FLAG(unix_socket, "Path of the Unix socket, or none. Default: /tmp/quire-UID/quire.sock.");
QUIRE_FLAG(unix_socket_mode, "Octal permissions of the socket. Default: 0600.");
QUIRE_FLAG(tcp_address, "HOST:PORT to listen on as well; port 0 is any. Default: none.");
QUIRE_FLAG(tls_certificate, "PEM certificate of the TCP listener. Default: no TLS.");
QUIRE_FLAG(tls_key, "PEM key of the TCP listener.");
QUIRE_FLAG(metrics_address, "HOST:PORT for Prometheus, or none. Default: 127.0.0.1:9400.");
QUIRE_FLAG(token_file, "File of \"TOKEN TENANT ROLE\" lines. Default: everybody is admin.");
QUIRE_FLAG(max_message_bytes, "Largest message received. Default: 16MiB.");
QUIRE_FLAG(drain_deadline, "How long sequences may go on after a drain began. Default: 30s.");

QUIRE_FLAG(pool, "Name of the pool. Default: default.");
QUIRE_FLAG(memory, "shared (the server's, mapped by workers) or worker. Default: shared.");
QUIRE_FLAG(device_memory_bytes, "Size of the pool of one rank. Default: 256MiB.");
QUIRE_FLAG(block_count, "Number of blocks; only with worker memory.");
QUIRE_FLAG(block_tokens, "Tokens of a block, a power of two. Default: 16.");
QUIRE_FLAG(max_sequence_tokens, "Longest sequence. Default: 131072, or what the pool holds.");
QUIRE_FLAG(ranks, "Ranks of a worker, each with its own region. Default: 1.");
QUIRE_FLAG(layout, "quire.v1.ModelLayout in text format. Default: the first attach decides.");
QUIRE_FLAG(memory_directory, "Folder of the pool files. Default: /dev/shm.");
QUIRE_FLAG(memory_mode, "Octal permissions of the pool files. Default: 0600.");
QUIRE_FLAG(memory_group, "Group of the pool files. Default: the server's.");
QUIRE_FLAG(window_slack_tokens, "Tokens a window block outlives its window. Default: 0.");
QUIRE_FLAG(watermark, "Share of the pool a begin leaves free, 0 to 1. Default: 0.");
QUIRE_FLAG(max_steps_in_flight, "Unanswered steps of a worker. Default: 8.");
QUIRE_FLAG(max_operations_per_step, "Operations and column entries of a step. Default: 4096.");
QUIRE_FLAG(max_sequences_per_worker, "Live sequences of a worker. Default: 65536.");
QUIRE_FLAG(max_pins, "Pins of the pool. Default: 4096.");
QUIRE_FLAG(max_leases, "Attached workers. Default: 1024.");
QUIRE_FLAG(default_lease, "Lease of a worker that asks for none. Default: 30s.");
QUIRE_FLAG(max_lease, "Longest lease. Default: 10m.");
QUIRE_FLAG(stream_grace, "Life of a lease whose stream broke. Default: 5s.");
QUIRE_FLAG(retry_interval, "Suggested wait after a shortage. Default: 20ms.");
QUIRE_FLAG(fence_timeout, "When a quarantine raises the alarm. Default: 10s.");
QUIRE_FLAG(content_checks_per_run,
           "Blocks checksummed between two calls, about each millisecond while any wait. "
           "Default: 64; 0: never.");
QUIRE_FLAG(content_sample, "One of this many reused blocks is compared. Default: 0, none.");

namespace quire {
namespace {

std::string EnvironmentName(const std::string& flag) {
  return "QUIRE_" + absl::AsciiStrToUpper(flag);
}

std::vector<std::string> ServerFields() { return FlagFields(*v1::ServerConfig::descriptor()); }

std::vector<std::string> PoolFields() { return FlagFields(*v1::PoolConfig::descriptor()); }

absl::Status ReadVariable(const std::string& flag) {
  const char* value = std::getenv(EnvironmentName(flag).c_str());
  return value == nullptr ? absl::OkStatus() : SetFlag(flag, value, EnvironmentName(flag));
}

absl::Status ReadEnvironment() {
  std::vector<std::string> flags = {"config_file", "check_config", "check_health"};
  for (const auto& fields : {ServerFields(), PoolFields()}) {
    flags.insert(flags.end(), fields.begin(), fields.end());
  }
  for (const std::string& flag : flags) {
    if (absl::Status status = ReadVariable(flag); !status.ok()) return status;
  }
  return absl::OkStatus();
}

void PrintFlags(const char* title, const std::vector<std::string>& flags) {
  std::printf("\n%s\n", title);
  for (const std::string& flag : flags) {
    std::printf("  --%-26s %s\n", flag.c_str(), absl::FindCommandLineFlag(flag)->Help().c_str());
  }
}

[[noreturn]] void PrintHelp() {
  std::printf(
      "quire-server: KV-cache blocks for inference workers, over gRPC.\n\n"
      "Each option is also an environment variable (--block_tokens: QUIRE_BLOCK_TOKENS) and a\n"
      "field of the configuration file. A flag wins over a variable, a variable over the file.\n"
      "Sizes take KiB, MiB, GiB; durations ms, s, m, h.\n");
  PrintFlags("General", {"config_file", "check_config", "check_health"});
  PrintFlags("Server", ServerFields());
  PrintFlags("Pool (of the only pool; several pools need a configuration file)", PoolFields());
  std::printf(
      "\nExit codes: 0 ended in order, 1 could not start or does not serve, 2 bad option.\n"
      "SIGTERM, SIGINT and SIGHUP begin a drain; a second one ends at once.\n");
  std::exit(0);
}

std::string FlagText(const std::string& name) {
  return absl::FindCommandLineFlag(name)->TryGet<std::string>().value_or("");
}

absl::Status ApplyFlags(const std::vector<std::string>& names, google::protobuf::Message& message) {
  for (const std::string& name : names) {
    const std::string text = FlagText(name);
    if (text.empty()) continue;
    if (absl::Status status = SetField(name, text, message); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ApplyPoolFlags(v1::ServerConfig& config) {
  const std::vector<std::string> fields = PoolFields();
  const auto given = [](const std::string& name) { return !FlagText(name).empty(); };
  if (std::ranges::none_of(fields, given)) return absl::OkStatus();
  if (config.pools_size() > 1) {
    return ToStatus(InvalidArgument("pool", "flags describe one pool, the configuration has more",
                                    {{"pools", config.pools_size()}}));
  }
  if (config.pools().empty()) config.add_pools();
  return ApplyFlags(fields, *config.mutable_pools(0));
}

[[noreturn]] void PrintVersion() {
  std::printf("quire-server " QUIRE_VERSION "\n");
  std::exit(0);
}

}  // namespace

absl::StatusOr<CommandLine> ParseCommandLine(int argc, char** argv) {
  if (HasWord(argc, argv, "help") || HasWord(argc, argv, "h")) PrintHelp();
  if (HasWord(argc, argv, "version")) PrintVersion();
  if (absl::Status status = ReadEnvironment(); !status.ok()) return status;
  const absl::StatusOr<std::vector<std::string>> words = SetFlags(argc, argv);
  if (!words.ok()) return words.status();
  if (!words->empty()) return ToStatus(InvalidArgument(words->front(), "options start with --"));
  CommandLine line;
  line.check_config = absl::GetFlag(FLAGS_check_config);
  line.check_health = absl::GetFlag(FLAGS_check_health);
  if (line.check_config && line.check_health) {
    return ToStatus(InvalidArgument("check_health", "not together with check_config"));
  }
  if (const std::string file = absl::GetFlag(FLAGS_config_file); !file.empty()) {
    auto read = ReadConfigFile(file);
    if (!read.ok()) return read.status();
    line.config = *std::move(read);
  }
  if (auto status = ApplyFlags(ServerFields(), line.config); !status.ok()) return status;
  if (auto status = ApplyPoolFlags(line.config); !status.ok()) return status;
  FillDefaults(line.config);
  return line;
}

}  // namespace quire
