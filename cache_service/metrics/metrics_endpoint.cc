#include "cache_service/metrics/metrics_endpoint.h"

#include <civetweb.h>

#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "cache_service/base/tcp_address.h"

namespace quire {
namespace {

// Many threads and short patience, so that connections which send nothing keep no scrape waiting:
// each takes a thread until its patience ends. A scraper sends its request with its first packet.
std::vector<std::string> ExposerOptions(const std::string& address) {
  return {"listening_ports",    address, "num_threads",    "256",
          "request_timeout_ms", "250",   "listen_backlog", "1024"};
}

// Of the many spellings of an address the HTTP library takes few.
absl::StatusOr<std::string> ListeningPort(const std::string& address) {
  const bool has_ipv6 = mg_check_feature(MG_FEATURES_IPV6) != 0;
  return NumericAddress("metrics_address", address, has_ipv6);
}

}  // namespace

absl::Status MetricsEndpoint::Check(const std::string& address) {
  return ListeningPort(address).status();
}

absl::StatusOr<std::unique_ptr<MetricsEndpoint>> MetricsEndpoint::Start(
    const std::string& address, std::shared_ptr<prometheus::Collectable> collector) {
  const absl::StatusOr<std::string> port = ListeningPort(address);
  if (!port.ok()) return port.status();
  // The exposer reports a port in use by an exception, which ends here.
  try {
    return std::unique_ptr<MetricsEndpoint>(new MetricsEndpoint(*port, std::move(collector)));
  } catch (const std::exception&) {
    return CannotListen("metrics_address", address);
  }
}

MetricsEndpoint::MetricsEndpoint(const std::string& address,
                                 std::shared_ptr<prometheus::Collectable> collector)
    : collector_(std::move(collector)), exposer_(ExposerOptions(address)) {
  exposer_.RegisterCollectable(collector_);
}

int MetricsEndpoint::port() const { return exposer_.GetListeningPorts().at(0); }

}  // namespace quire
