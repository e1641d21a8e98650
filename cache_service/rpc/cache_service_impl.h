// CacheService as pure translation: messages to structs, engine calls, structs to messages.
#ifndef QUIRE_CACHE_SERVICE_RPC_CACHE_SERVICE_IMPL_H_
#define QUIRE_CACHE_SERVICE_RPC_CACHE_SERVICE_IMPL_H_

#include "cache_service/rpc/call_runner.h"
#include "cache_service/rpc/pool_registry.h"
#include "cache_service/rpc/stream_registry.h"
#include "quire/v1/cache_service.grpc.pb.h"

namespace quire {

// Calls that carry steps take bytes (wire_message.h).
using RawStepsService = v1::CacheService::WithCallbackMethod_AttachWorker<
    v1::CacheService::WithCallbackMethod_RenewLease<
        v1::CacheService::WithCallbackMethod_DetachWorker<
            v1::CacheService::WithRawCallbackMethod_Step<
                v1::CacheService::WithRawCallbackMethod_StreamSteps<
                    v1::CacheService::WithCallbackMethod_GetBlockTable<
                        v1::CacheService::WithCallbackMethod_PeekPrefix<
                            v1::CacheService::Service>>>>>>>;

// Thread-safe. What it is given must outlive it.
class CacheServiceImpl final : public RawStepsService {
 public:
  CacheServiceImpl(const PoolRegistry& pools, CallRunner& calls, StreamRegistry& streams,
                   uint64_t max_message_bytes);

  grpc::ServerUnaryReactor* AttachWorker(grpc::CallbackServerContext* context,
                                         const v1::AttachWorkerRequest* request,
                                         v1::AttachWorkerResponse* response) override;
  grpc::ServerUnaryReactor* RenewLease(grpc::CallbackServerContext* context,
                                       const v1::RenewLeaseRequest* request,
                                       v1::RenewLeaseResponse* response) override;
  grpc::ServerUnaryReactor* DetachWorker(grpc::CallbackServerContext* context,
                                         const v1::DetachWorkerRequest* request,
                                         v1::DetachWorkerResponse* response) override;
  grpc::ServerUnaryReactor* Step(grpc::CallbackServerContext* context,
                                 const grpc::ByteBuffer* request,
                                 grpc::ByteBuffer* response) override;
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* StreamSteps(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* GetBlockTable(grpc::CallbackServerContext* context,
                                          const v1::GetBlockTableRequest* request,
                                          v1::GetBlockTableResponse* response) override;
  grpc::ServerUnaryReactor* PeekPrefix(grpc::CallbackServerContext* context,
                                       const v1::PeekPrefixRequest* request,
                                       v1::PeekPrefixResponse* response) override;

 private:
  absl::Status Attach(const v1::AttachWorkerRequest& request, const Caller& caller,
                      v1::AttachWorkerResponse* response);
  absl::Status GetTables(const v1::GetBlockTableRequest& request, const Caller& caller,
                         v1::GetBlockTableResponse* response) const;
  absl::Status Peek(const v1::PeekPrefixRequest& request, const Caller& caller,
                    v1::PeekPrefixResponse* response) const;

  const PoolRegistry& pools_;
  CallRunner& calls_;
  StreamRegistry& streams_;
  const uint64_t max_message_bytes_;
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_RPC_CACHE_SERVICE_IMPL_H_
