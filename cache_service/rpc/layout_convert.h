// quire.v1.ModelLayout to the shape that layouts are planned from.
#ifndef QUIRE_CACHE_SERVICE_RPC_LAYOUT_CONVERT_H_
#define QUIRE_CACHE_SERVICE_RPC_LAYOUT_CONVERT_H_

#include "absl/status/statusor.h"
#include "cache_service/memory/pool_layout.h"
#include "quire/v1/cache_service.pb.h"

namespace quire {

// block_tokens 0 becomes `default_block_tokens`. Errors: INVALID_ARGUMENT naming the field.
absl::StatusOr<ModelShape> FromProto(const v1::ModelLayout& layout, uint32_t default_block_tokens);

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_RPC_LAYOUT_CONVERT_H_
