// AdminService as pure translation: messages to structs, engine calls, structs to messages.
#ifndef QUIRE_CACHE_SERVICE_RPC_ADMIN_SERVICE_IMPL_H_
#define QUIRE_CACHE_SERVICE_RPC_ADMIN_SERVICE_IMPL_H_

#include <functional>
#include <optional>

#include "cache_service/rpc/call_runner.h"
#include "cache_service/rpc/pool_registry.h"
#include "quire/v1/admin_service.grpc.pb.h"

namespace quire {

// Thread-safe. What it is given must outlive it.
class AdminServiceImpl final : public v1::AdminService::CallbackService {
 public:
  // Begins to drain the server; absent: its default deadline. Returns the number of live sequences.
  using DrainFunction = std::function<uint64_t(std::optional<Duration>)>;

  AdminServiceImpl(const PoolRegistry& pools, CallRunner& calls, DrainFunction drain);

  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;

  Reactor* ListPools(Context* context, const v1::ListPoolsRequest* request,
                     v1::ListPoolsResponse* response) override;
  Reactor* GetPool(Context* context, const v1::GetPoolRequest* request,
                   v1::GetPoolResponse* response) override;
  Reactor* ListWorkers(Context* context, const v1::ListWorkersRequest* request,
                       v1::ListWorkersResponse* response) override;
  Reactor* ListSequences(Context* context, const v1::ListSequencesRequest* request,
                         v1::ListSequencesResponse* response) override;
  Reactor* GetSequence(Context* context, const v1::GetSequenceRequest* request,
                       v1::GetSequenceResponse* response) override;
  Reactor* PinPrefix(Context* context, const v1::PinPrefixRequest* request,
                     v1::PinPrefixResponse* response) override;
  Reactor* UnpinPrefix(Context* context, const v1::UnpinPrefixRequest* request,
                       v1::UnpinPrefixResponse* response) override;
  Reactor* ListPins(Context* context, const v1::ListPinsRequest* request,
                    v1::ListPinsResponse* response) override;
  Reactor* EvictPrefix(Context* context, const v1::EvictPrefixRequest* request,
                       v1::EvictPrefixResponse* response) override;
  Reactor* FlushPool(Context* context, const v1::FlushPoolRequest* request,
                     v1::FlushPoolResponse* response) override;
  Reactor* AuditPool(Context* context, const v1::AuditPoolRequest* request,
                     v1::AuditPoolResponse* response) override;
  Reactor* EndWorker(Context* context, const v1::EndWorkerRequest* request,
                     v1::EndWorkerResponse* response) override;
  Reactor* Drain(Context* context, const v1::DrainRequest* request,
                 v1::DrainResponse* response) override;

 private:
  // Errors of Find; null if the pool has no layout, hence no content and nobody attached.
  absl::StatusOr<CacheEngine*> EngineOf(const std::string& pool) const;

  const PoolRegistry& pools_;
  CallRunner& calls_;
  const DrainFunction drain_;
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_RPC_ADMIN_SERVICE_IMPL_H_
