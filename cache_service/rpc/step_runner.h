// One step, from message to answer; unary calls and streams use the same.
#ifndef QUIRE_CACHE_SERVICE_RPC_STEP_RUNNER_H_
#define QUIRE_CACHE_SERVICE_RPC_STEP_RUNNER_H_

#include "absl/status/status.h"
#include "cache_service/rpc/caller.h"
#include "cache_service/rpc/pool_registry.h"
#include "cache_service/rpc/step_convert.h"
#include "quire/v1/cache_service.pb.h"

namespace quire {

// Keeps its storage from step to step. Not thread-safe.
class StepRunner {
 public:
  absl::Status Run(const PoolRegistry& pools, const v1::StepBatch& batch, const Caller& caller,
                   v1::StepAnswer* answer);

 private:
  StepDecoder decoder_;
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_RPC_STEP_RUNNER_H_
