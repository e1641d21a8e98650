#include "cache_service/server_config.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <chrono>
#include <cstdlib>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "cache_service/base/default_socket.h"
#include "cache_service/base/error.h"
#include "cache_service/base/random_number.h"
#include "cache_service/base/small_file.h"
#include "cache_service/base/tcp_address.h"
#include "cache_service/config_fields.h"
#include "cache_service/metrics/metrics_endpoint.h"
#include "cache_service/pool_config.h"
#include "cache_service/rpc/listeners.h"
#include "cache_service/rpc/proto_convert.h"

namespace quire {
namespace {

constexpr uint64_t kDefaultMessageBytes = uint64_t{16} << 20;
// gRPC counts message bytes in a signed 32-bit integer.
constexpr uint64_t kMostMessageBytes = uint64_t{1} << 30;
constexpr uint64_t kLeastMessageBytes = 4096;
constexpr char kNone[] = "none";

class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& message) override {
    if (text_.empty()) text_ = absl::StrCat(line + 1, ":", column + 1, ": ", message);
  }

  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

absl::Status CheckAllFields(const v1::ServerConfig& config) {
  if (absl::Status status = CheckFields(config); !status.ok()) return status;
  for (const v1::PoolConfig& pool : config.pools()) {
    if (absl::Status status = CheckFields(pool); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status CheckAddresses(const ServerOptions& options) {
  for (const auto& [field, address] : {std::pair("tcp_address", &options.tcp_address),
                                       std::pair("metrics_address", &options.metrics_address)}) {
    if (address->empty()) continue;
    if (absl::Status status = CheckCanBind(field, *address); !status.ok()) return status;
  }
  if (options.metrics_address.empty()) return absl::OkStatus();
  if (!options.tcp_address.empty() && Collide(options.tcp_address, options.metrics_address)) {
    return ToStatus(InvalidArgument(
        "metrics_address",
        absl::StrCat(options.metrics_address, ": the port of tcp_address, ", options.tcp_address),
        {{"address", options.metrics_address}, {"tcp_address", options.tcp_address}}));
  }
  return MetricsEndpoint::Check(options.metrics_address);
}

std::string UnlessNone(const std::string& value) { return value == kNone ? "" : value; }

absl::Status CheckListeners(const ServerOptions& options) {
  if (options.unix_socket.empty() && options.tcp_address.empty()) {
    return ToStatus(InvalidArgument("unix_socket", "none, and no tcp_address either"));
  }
  if (absl::Status status = UnixSocket::CheckPath(options.unix_socket); !status.ok()) {
    return status;
  }
  if (options.tls_certificate.empty() != options.tls_key.empty()) {
    return ToStatus(InvalidArgument("tls_key", "certificate and key belong together"));
  }
  if (options.tcp_address.empty() && !options.tls_certificate.empty()) {
    return ToStatus(InvalidArgument("tls_certificate", "only with a tcp_address"));
  }
  for (const auto& [field, address] : {std::pair("tcp_address", &options.tcp_address),
                                       std::pair("metrics_address", &options.metrics_address)}) {
    if (address->empty()) continue;
    if (absl::Status status = CheckTcpAddress(field, *address); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status CheckNumbers(const ServerOptions& options) {
  if (options.max_message_bytes < kLeastMessageBytes ||
      options.max_message_bytes > kMostMessageBytes) {
    return ToStatus(InvalidArgument("max_message_bytes", "out of range",
                                    {{"given", options.max_message_bytes},
                                     {"least", kLeastMessageBytes},
                                     {"limit", kMostMessageBytes}}));
  }
  if (options.drain_deadline < Duration::zero()) {
    return ToStatus(InvalidArgument(
        "drain_deadline", "negative",
        {{"given", duration_cast<std::chrono::milliseconds>(options.drain_deadline).count()},
         {"unit", "ms"}}));
  }
  return absl::OkStatus();
}

absl::Status ConvertPools(const v1::ServerConfig& config, uint64_t epoch, ServerOptions& options) {
  absl::flat_hash_set<std::string> names;
  for (const v1::PoolConfig& pool : config.pools()) {
    if (!names.insert(pool.pool()).second) {
      return ToStatus(InvalidArgument("pool", "name of two pools", {{"pool", pool.pool()}}));
    }
    absl::StatusOr<PoolSetup> setup = ToPoolSetup(pool, epoch);
    if (!setup.ok()) return setup.status();
    options.pools.push_back(*std::move(setup));
  }
  return absl::OkStatus();
}

// Whether the text contains the value, and not as a part of a longer word or number.
bool Says(const std::string& text, const std::string& value) {
  for (size_t at = text.find(value); at != std::string::npos; at = text.find(value, at + 1)) {
    const bool starts = at == 0 || !absl::ascii_isalnum(static_cast<unsigned char>(text[at - 1]));
    const size_t end = at + value.size();
    if (starts &&
        (end == text.size() || !absl::ascii_isalnum(static_cast<unsigned char>(text[end]))))
      return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<v1::ServerConfig> ReadConfigFile(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadSmallFile("config_file", path);
  if (!text.ok()) return text.status();
  google::protobuf::TextFormat::Parser parser;
  FirstError error;
  parser.RecordErrorsTo(&error);
  v1::ServerConfig config;
  if (!parser.ParseFromString(*text, &config)) {
    return ToStatus(
        InvalidArgument("config_file", absl::StrCat(path, ": ", error.text()), {{"path", path}}));
  }
  return config;
}

void FillDefaults(v1::ServerConfig& config) {
  if (!config.has_unix_socket()) config.set_unix_socket(DefaultUnixSocket());
  if (!config.has_unix_socket_mode()) config.set_unix_socket_mode("0600");
  if (!config.has_metrics_address()) config.set_metrics_address("127.0.0.1:9400");
  if (!config.has_max_message_bytes()) config.set_max_message_bytes(kDefaultMessageBytes);
  if (!config.has_drain_deadline()) config.mutable_drain_deadline()->set_seconds(30);
  if (config.pools().empty()) config.add_pools();
  for (v1::PoolConfig& pool : *config.mutable_pools()) FillDefaults(pool);
}

absl::StatusOr<ServerOptions> ToServerOptions(const v1::ServerConfig& config, uint64_t epoch) {
  if (absl::Status status = CheckAllFields(config); !status.ok()) return status;
  ServerOptions options;
  options.unix_socket = UnlessNone(config.unix_socket());
  options.tcp_address = UnlessNone(config.tcp_address());
  options.tls_certificate = config.tls_certificate();
  options.tls_key = config.tls_key();
  options.metrics_address = UnlessNone(config.metrics_address());
  options.token_file = config.token_file();
  options.max_message_bytes = config.max_message_bytes();
  options.drain_deadline = FromProto(config.drain_deadline());
  const auto mode = ParseMode("unix_socket_mode", config.unix_socket_mode());
  if (!mode.ok()) return mode.status();
  options.unix_socket_mode = *mode;
  if (absl::Status status = CheckListeners(options); !status.ok()) return status;
  if (absl::Status status = CheckNumbers(options); !status.ok()) return status;
  if (absl::Status status = ConvertPools(config, epoch, options); !status.ok()) return status;
  return options;
}

absl::Status CheckFiles(const ServerOptions& options) {
  if (!options.token_file.empty()) {
    const absl::Status status = Authenticator::FromFile(options.token_file).status();
    if (!status.ok()) return status;
  }
  return TcpCredentials(options.tls_certificate, options.tls_key).status();
}

absl::Status CheckPlaces(const ServerOptions& options) {
  if (!options.unix_socket.empty()) {
    if (absl::Status status = UnixSocket::Check(options.unix_socket); !status.ok()) return status;
  }
  if (absl::Status status = CheckAddresses(options); !status.ok()) return status;
  const std::vector<ShmOptions> memories = MemoriesOf(options.pools);
  if (absl::Status status = CheckFolders(memories); !status.ok()) return status;
  return CheckSpace(memories, Space::kWhole);
}

std::string Explain(const absl::Status& status) {
  const std::string message(status.message());
  std::string rest;
  for (const ErrorDetail& detail : FromStatus(status).details) {
    if (Says(message, detail.value)) continue;
    absl::StrAppend(&rest, rest.empty() ? " (" : ", ", detail.name, " ", detail.value);
  }
  return absl::StrCat(message, rest, rest.empty() ? "" : ")");
}

uint64_t NewEpoch() {
  uint64_t epoch = 0;
  while (epoch == 0) epoch = RandomNumber();
  return epoch;
}

}  // namespace quire
