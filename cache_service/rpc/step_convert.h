// Steps and their answers, to and from the engine's structs.
#ifndef QUIRE_CACHE_SERVICE_RPC_STEP_CONVERT_H_
#define QUIRE_CACHE_SERVICE_RPC_STEP_CONVERT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cache_service/engine/step.h"
#include "cache_service/rpc/caller.h"
#include "quire/v1/cache_service.pb.h"

namespace quire {

// Turns one batch after another into operations; keeps its storage. Not thread-safe.
class StepDecoder {
 public:
  // Tokens and columns are not copied: operations() points into `batch`. Errors: INVALID_ARGUMENT
  // for a malformed batch (no operation set, columns of different length, token counts that do not
  // add up, more than `max_operations`), PERMISSION_DENIED for a foreign tenant.
  absl::Status Decode(const v1::StepBatch& batch, const Caller& caller, uint32_t max_operations);

  const std::vector<Operation>& operations() const { return operations_; }

 private:
  absl::Status Add(const v1::Operation& operation, int index, const Caller& caller);

  std::vector<Operation> operations_;
};

void FillAnswer(const StepResult& result, v1::StepAnswer* out);

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_RPC_STEP_CONVERT_H_
