// Assembly of a whole server: pools, services, listeners, metrics, threads; and its orderly end.
#ifndef QUIRE_CACHE_SERVICE_RPC_SERVER_H_
#define QUIRE_CACHE_SERVICE_RPC_SERVER_H_

#include <grpcpp/server.h>
#include <sys/types.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cache_service/memory/shm_pool_memory.h"
#include "cache_service/metrics/metrics_endpoint.h"
#include "cache_service/rpc/admin_service_impl.h"
#include "cache_service/rpc/cache_service_impl.h"
#include "cache_service/rpc/drain_state.h"
#include "cache_service/rpc/maintenance.h"
#include "cache_service/rpc/pool_setup.h"
#include "cache_service/rpc/unix_socket.h"

namespace quire {

struct ServerOptions {
  // Empty: no Unix socket.
  std::string unix_socket;
  mode_t unix_socket_mode = 0600;
  // Empty: no TCP listener.
  std::string tcp_address;
  // PEM files; both or none.
  std::string tls_certificate;
  std::string tls_key;
  // Empty: no endpoint.
  std::string metrics_address;
  // Empty: everybody may do everything.
  std::string token_file;
  uint64_t max_message_bytes = uint64_t{16} << 20;
  Duration drain_deadline = std::chrono::seconds(30);
  std::string version;
  std::vector<PoolSetup> pools;
};

class Server {
 public:
  // Listens when it returns. The clock must outlive the server. Errors: INVALID_ARGUMENT naming the
  // option; CANCELLED if `stopped` asks for it meanwhile. Then nothing is left behind.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options,
                                                       const Clock& clock,
                                                       const StopFunction& stopped = nullptr);
  // Stops at once what still runs.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Health turns NOT_SERVING, begins and attaches are refused, the rest goes on. Never blocks.
  uint64_t StartDraining(std::optional<Duration> deadline);
  // Blocks until a drain is over: nothing is live any more, or its deadline has passed.
  void WaitUntilDrained();
  // Ends streams with DRAINING, lets unary calls finish, closes the listeners. Blocks.
  void Stop();

  // 0 if there is no such listener.
  int tcp_port() const { return tcp_port_; }

  int metrics_port() const { return metrics_ == nullptr ? 0 : metrics_->port(); }

  const PoolRegistry& pools() const { return *pools_; }

 private:
  Server(const ServerOptions& options, const Clock& clock);

  absl::Status CreatePools(const StopFunction& stopped);
  absl::Status CreateServices();
  absl::Status Listen();
  absl::Status StartMetrics();
  void SetServing(bool serving);

  const ServerOptions options_;
  const Clock& clock_;
  // In the order of construction; destroyed from the end.
  std::unique_ptr<UnixSocket> socket_;
  std::unique_ptr<PoolRegistry> pools_;
  std::unique_ptr<Authenticator> authenticator_;
  RpcStats rpc_stats_;
  SerialLane lane_;
  StreamRegistry streams_;
  DrainState drain_;
  std::unique_ptr<CallRunner> calls_;
  std::unique_ptr<CacheServiceImpl> cache_service_;
  std::unique_ptr<AdminServiceImpl> admin_service_;
  std::unique_ptr<Maintenance> maintenance_;
  std::unique_ptr<MetricsEndpoint> metrics_;
  std::unique_ptr<grpc::Server> grpc_server_;
  int tcp_port_ = 0;
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_RPC_SERVER_H_
