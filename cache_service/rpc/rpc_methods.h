// The methods of both services, as rows of RpcStats.
#ifndef QUIRE_CACHE_SERVICE_RPC_RPC_METHODS_H_
#define QUIRE_CACHE_SERVICE_RPC_RPC_METHODS_H_

#include <cstddef>
#include <vector>

#include "cache_service/metrics/rpc_stats.h"

namespace quire {

enum class RpcMethod : size_t {
  kAttachWorker,
  kRenewLease,
  kDetachWorker,
  kStep,
  kStreamSteps,
  kGetBlockTable,
  kPeekPrefix,
  // AdminService from here on.
  kListPools,
  kGetPool,
  kListWorkers,
  kListSequences,
  kGetSequence,
  kPinPrefix,
  kUnpinPrefix,
  kListPins,
  kEvictPrefix,
  kFlushPool,
  kAuditPool,
  kEndWorker,
  kDrain,
};

inline bool NeedsAdmin(RpcMethod method) { return method >= RpcMethod::kListPools; }

// In the order of RpcMethod.
inline std::vector<RpcStats::Method> RpcMethodNames() {
  constexpr const char* kNames[] = {"AttachWorker", "RenewLease",    "DetachWorker",  "Step",
                                    "StreamSteps",  "GetBlockTable", "PeekPrefix",    "ListPools",
                                    "GetPool",      "ListWorkers",   "ListSequences", "GetSequence",
                                    "PinPrefix",    "UnpinPrefix",   "ListPins",      "EvictPrefix",
                                    "FlushPool",    "AuditPool",     "EndWorker",     "Drain"};
  std::vector<RpcStats::Method> methods;
  for (const char* name : kNames) {
    const bool admin = NeedsAdmin(static_cast<RpcMethod>(methods.size()));
    methods.push_back({admin ? "quire.v1.AdminService" : "quire.v1.CacheService", name});
  }
  return methods;
}

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_RPC_RPC_METHODS_H_
