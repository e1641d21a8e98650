// Attach requests and answers, to and from plain structs.
#ifndef QUIRE_CACHE_SERVICE_RPC_ATTACH_CONVERT_H_
#define QUIRE_CACHE_SERVICE_RPC_ATTACH_CONVERT_H_

#include <optional>

#include "absl/status/statusor.h"
#include "cache_service/rpc/caller.h"
#include "cache_service/rpc/pool.h"
#include "quire/v1/cache_service.pb.h"

namespace quire {

struct AttachRequestParts {
  AttachParams params;
  std::optional<ModelShape> shape;
};

// Errors: INVALID_ARGUMENT naming the field.
absl::StatusOr<AttachRequestParts> FromProto(const v1::AttachWorkerRequest& request,
                                             uint32_t default_block_tokens, const Caller& caller);

// All fields but lease_id and max_message_bytes.
void FillAttachment(const Pool& pool, const PoolAttachment& attachment,
                    v1::AttachWorkerResponse* response);

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_RPC_ATTACH_CONVERT_H_
