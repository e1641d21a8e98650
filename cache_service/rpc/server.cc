#include "cache_service/rpc/server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/server_builder.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cache_service/base/error.h"
#include "cache_service/base/tcp_address.h"
#include "cache_service/memory/folder_locks.h"
#include "cache_service/metrics/collector.h"
#include "cache_service/rpc/listeners.h"
#include "cache_service/rpc/status_convert.h"

namespace quire {
namespace {

// Health watchers never end by themselves; everything else does within this.
constexpr auto kShutdownGrace = std::chrono::milliseconds(500);

// For another server to take its space: a second for each few GiB.
constexpr auto kFolderPatience = std::chrono::seconds(60);

// The socket is claimed and TLS is read by now, so that the TCP address is the likely cause.
absl::Status CannotBind(const ServerOptions& options) {
  if (!options.tcp_address.empty()) return CannotListen("tcp_address", options.tcp_address);
  return ToStatus(InvalidArgument("unix_socket",
                                  absl::StrCat("cannot listen on ", options.unix_socket),
                                  {{"path", options.unix_socket}}));
}

grpc::Status DrainingStatus() {
  return ToGrpcStatus(
      ToStatus(MakeError(Reason::kDraining, "the server ends; use another server")));
}

absl::StatusOr<std::unique_ptr<Pool>> CreatePool(PoolSetup setup, const Clock& clock,
                                                 const StopFunction& stopped) {
  // The maintenance thread beats; a longer gap is a pause of the whole process.
  setup.pool.engine.heartbeat = Maintenance::kLongestSleep;
  // Before any file is made.
  if (absl::Status status = CheckPool(setup.pool); !status.ok()) return status;
  std::unique_ptr<PoolMemory> memory;
  if (setup.pool.engine.memory == PoolMemoryKind::kShared) {
    auto created = ShmPoolMemory::Create(MemoryOf(setup), stopped);
    if (!created.ok()) return created.status();
    memory = *std::move(created);
  }
  return Pool::Create(setup.pool, std::move(memory), clock);
}

// gRPC binds the socket; until its mode is set, nobody else may connect.
class PrivateUmask {
 public:
  PrivateUmask() : before_(umask(0177)) {}

  ~PrivateUmask() { umask(before_); }

  PrivateUmask(const PrivateUmask&) = delete;
  PrivateUmask& operator=(const PrivateUmask&) = delete;

 private:
  const mode_t before_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options,
                                                      const Clock& clock,
                                                      const StopFunction& stopped) {
  std::unique_ptr<Server> server(new Server(options, clock));
  if (absl::Status status = server->CreatePools(stopped); !status.ok()) return status;
  for (const auto step : {&Server::CreateServices, &Server::Listen, &Server::StartMetrics}) {
    if (const absl::Status status = (server.get()->*step)(); !status.ok()) return status;
  }
  server->SetServing(true);
  return server;
}

Server::Server(const ServerOptions& options, const Clock& clock)
    : options_(options), clock_(clock), rpc_stats_(RpcMethodNames()), drain_(clock) {}

Server::~Server() { Stop(); }

absl::Status Server::CreatePools(const StopFunction& stopped) {
  // The socket first: a second server must not touch the files of the first.
  if (!options_.unix_socket.empty()) {
    auto socket = UnixSocket::Claim(options_.unix_socket);
    if (!socket.ok()) return socket.status();
    socket_ = *std::move(socket);
  }
  // All together, before the first takes its space, and until the last has.
  const std::vector<ShmOptions> memories = MemoriesOf(options_.pools);
  const FolderLocks locks(memories, kFolderPatience, stopped);
  if (absl::Status status = MakeRoom(memories); !status.ok()) return status;
  std::vector<std::unique_ptr<Pool>> pools;
  for (const PoolSetup& setup : options_.pools) {
    auto pool = CreatePool(setup, clock_, stopped);
    if (!pool.ok()) return pool.status();
    pools.push_back(*std::move(pool));
    if (stopped != nullptr && stopped()) return absl::CancelledError("stopped at its start");
  }
  std::ranges::sort(pools, {}, [](const auto& pool) { return pool->name(); });
  pools_ = std::make_unique<PoolRegistry>(std::move(pools));
  return absl::OkStatus();
}

absl::Status Server::CreateServices() {
  authenticator_ = std::make_unique<Authenticator>(Authenticator::OpenToAll());
  if (!options_.token_file.empty()) {
    auto loaded = Authenticator::FromFile(options_.token_file);
    if (!loaded.ok()) return loaded.status();
    *authenticator_ = *std::move(loaded);
  }
  calls_ = std::make_unique<CallRunner>(*authenticator_, clock_, rpc_stats_, lane_);
  cache_service_ =
      std::make_unique<CacheServiceImpl>(*pools_, *calls_, streams_, options_.max_message_bytes);
  admin_service_ = std::make_unique<AdminServiceImpl>(
      *pools_, *calls_,
      [this](std::optional<Duration> deadline) { return StartDraining(deadline); });
  maintenance_ = std::make_unique<Maintenance>(*pools_, clock_);
  return absl::OkStatus();
}

absl::Status Server::Listen() {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.SetMaxReceiveMessageSize(static_cast<int>(options_.max_message_bytes));
  builder.RegisterService(cache_service_.get());
  builder.RegisterService(admin_service_.get());
  if (socket_ != nullptr) {
    builder.AddListeningPort(socket_->address(), grpc::InsecureServerCredentials());
  }
  if (!options_.tcp_address.empty()) {
    const absl::Status status = CheckTcpAddress("tcp_address", options_.tcp_address);
    if (!status.ok()) return status;
    auto credentials = TcpCredentials(options_.tls_certificate, options_.tls_key);
    if (!credentials.ok()) return credentials.status();
    builder.AddListeningPort(options_.tcp_address, *credentials, &tcp_port_);
  }
  PrivateUmask guard;
  grpc_server_ = builder.BuildAndStart();
  if (grpc_server_ == nullptr) return CannotBind(options_);
  return socket_ == nullptr ? absl::OkStatus() : socket_->SetMode(options_.unix_socket_mode);
}

absl::Status Server::StartMetrics() {
  if (options_.metrics_address.empty()) return absl::OkStatus();
  auto collector = std::make_shared<Collector>([this] { return pools_->Snapshots(); }, rpc_stats_,
                                               options_.version);
  auto endpoint = MetricsEndpoint::Start(options_.metrics_address, std::move(collector));
  if (!endpoint.ok()) return endpoint.status();
  metrics_ = *std::move(endpoint);
  return absl::OkStatus();
}

void Server::SetServing(bool serving) {
  grpc::HealthCheckServiceInterface* health = grpc_server_->GetHealthCheckService();
  for (const char* service : {"", "quire.v1.CacheService", "quire.v1.AdminService"}) {
    health->SetServingStatus(service, serving);
  }
}

uint64_t Server::StartDraining(std::optional<Duration> deadline) {
  SetServing(false);
  uint64_t running = 0;
  for (const auto& pool : pools_->pools()) running += pool->StartDraining();
  drain_.Begin(deadline.value_or(options_.drain_deadline));
  return running;
}

void Server::WaitUntilDrained() {
  drain_.WaitUntilOver([this] { return pools_->LiveSequences(); });
}

void Server::Stop() {
  if (grpc_server_ == nullptr) return;
  StartDraining(Duration::zero());
  streams_.EndAll(DrainingStatus());
  grpc_server_->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
  grpc_server_.reset();
  metrics_.reset();
  maintenance_.reset();
}

}  // namespace quire
