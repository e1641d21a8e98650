// HTTP endpoint that Prometheus scrapes.
#ifndef QUIRE_CACHE_SERVICE_METRICS_METRICS_ENDPOINT_H_
#define QUIRE_CACHE_SERVICE_METRICS_METRICS_ENDPOINT_H_

#include <prometheus/collectable.h>
#include <prometheus/exposer.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace quire {

// Serves /metrics until destroyed.
class MetricsEndpoint {
 public:
  // Whether Start would take the address; the port may be in use. Errors: INVALID_ARGUMENT for
  // metrics_address.
  static absl::Status Check(const std::string& address);

  // `address` is host:port; port 0 picks a free one. Errors: INVALID_ARGUMENT for metrics_address.
  static absl::StatusOr<std::unique_ptr<MetricsEndpoint>> Start(
      const std::string& address, std::shared_ptr<prometheus::Collectable> collector);

  int port() const;

 private:
  MetricsEndpoint(const std::string& address, std::shared_ptr<prometheus::Collectable> collector);

  const std::shared_ptr<prometheus::Collectable> collector_;
  prometheus::Exposer exposer_;
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_METRICS_METRICS_ENDPOINT_H_
