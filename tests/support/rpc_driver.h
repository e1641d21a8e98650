// A real server on a Unix socket of its own, called through gRPC stubs as any client would.
#ifndef QUIRE_TESTS_SUPPORT_RPC_DRIVER_H_
#define QUIRE_TESTS_SUPPORT_RPC_DRIVER_H_

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache_service/rpc/server.h"
#include "quire/v1/admin_service.grpc.pb.h"
#include "quire/v1/cache_service.grpc.pb.h"
#include "tests/support/engine_driver.h"
#include "tests/support/temp_folder.h"
#include "worker/client/pool_mapping.h"

namespace quire::testing {

enum class StepCalls { kStream, kUnary };

class RpcDriver final : public EngineDriver {
 public:
  // Ends the test program with a message if the server does not start.
  RpcDriver(const EngineOptions& options, StepCalls calls);
  ~RpcDriver() override;

  const std::string& socket() const { return socket_; }

  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

  v1::CacheService::Stub& cache() { return *cache_; }

  v1::AdminService::Stub& admin() { return *admin_; }

  // What the server sees when a worker's process ends: the stream breaks, the mappings go.
  void EndProcess(const LeaseId& lease);

  void Unmap(const LeaseId& lease) { mappings_.erase(lease); }

  client::PoolMapping& mapping(const LeaseId& lease) { return *mappings_.at(lease).at(0); }

  // The server ends without a farewell and another life of it starts on the same socket. Mappings
  // stay, as in workers that live on.
  void Restart();

  const EngineOptions& options() const override { return options_; }

  // Maps the memory that was granted, as a worker does before its first step.
  absl::StatusOr<AttachResult> Attach(const AttachParams& params) override;
  absl::StatusOr<RenewResult> Renew(const RenewParams& params) override;
  absl::Status Detach(const LeaseId& lease, Epoch epoch, StepNumber completed_step) override;
  void BreakStream(const LeaseId& lease) override;
  absl::StatusOr<StepResult> Step(const StepParams& params) override;
  absl::StatusOr<std::vector<SequenceView>> GetTables(
      const LeaseId& lease, Epoch epoch, std::span<const SequenceHandle> sequences) override;
  absl::StatusOr<uint32_t> PeekPrefix(const PrefixSelector& prefix) override;
  std::vector<WorkerView> ListWorkers() override;
  std::vector<SequenceView> ListSequences(std::string_view worker) override;
  absl::StatusOr<SequenceView> GetSequence(std::string_view worker, SequenceHandle handle) override;
  std::vector<PinView> ListPins() override;
  EngineStats Stats() override;
  absl::StatusOr<PinResult> PinPrefix(const PrefixSelector& prefix, std::string_view owner,
                                      Duration duration) override;
  absl::Status UnpinPrefix(std::string_view pin_id) override;
  absl::StatusOr<uint64_t> EvictPrefix(const PrefixSelector& prefix) override;
  uint64_t Flush() override;
  AuditReport Audit(bool content) override;
  absl::StatusOr<uint32_t> EndWorker(std::string_view worker) override;
  uint32_t StartDraining() override;

 private:
  struct Stream;

  void StartServer();

  absl::StatusOr<StepResult> StepOnStream(const StepParams& params);
  absl::StatusOr<StepResult> StepByCall(const StepParams& params);
  absl::Status MapRegions(const v1::AttachWorkerResponse& attached);
  v1::ModelLayout LayoutMessage() const;

  EngineOptions options_;
  const StepCalls calls_;
  TempFolder folder_;
  std::string socket_;
  SystemClock clock_;
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::CacheService::Stub> cache_;
  std::unique_ptr<v1::AdminService::Stub> admin_;
  std::map<LeaseId, std::vector<std::unique_ptr<client::PoolMapping>>> mappings_;
  std::map<LeaseId, std::unique_ptr<Stream>> streams_;
};

std::unique_ptr<EngineDriver> MakeStreamDriver(const EngineOptions& options);
std::unique_ptr<EngineDriver> MakeUnaryDriver(const EngineOptions& options);

}  // namespace quire::testing

#endif  // QUIRE_TESTS_SUPPORT_RPC_DRIVER_H_
