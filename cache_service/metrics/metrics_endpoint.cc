#include "cache_service/metrics/metrics_endpoint.h"

#include <exception>
#include <utility>

#include "cache_service/base/tcp_address.h"

namespace quire {

absl::StatusOr<std::unique_ptr<MetricsEndpoint>> MetricsEndpoint::Start(
    const std::string& address, std::shared_ptr<prometheus::Collectable> collector) {
  // The exposer reports a bad address or a port in use by an exception, which ends here.
  try {
    return std::unique_ptr<MetricsEndpoint>(new MetricsEndpoint(address, std::move(collector)));
  } catch (const std::exception&) {
    return CannotListen("metrics_address", address);
  }
}

MetricsEndpoint::MetricsEndpoint(const std::string& address,
                                 std::shared_ptr<prometheus::Collectable> collector)
    : collector_(std::move(collector)), exposer_(address) {
  exposer_.RegisterCollectable(collector_);
}

int MetricsEndpoint::port() const { return exposer_.GetListeningPorts().at(0); }

}  // namespace quire
