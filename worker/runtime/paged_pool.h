// Between a client's pool and the model's paged cache.
#ifndef QUIRE_WORKER_RUNTIME_PAGED_POOL_H_
#define QUIRE_WORKER_RUNTIME_PAGED_POOL_H_

#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/client/cache_client.h"
#include "worker/model/paged_kv.h"

namespace quire::runtime {

// A paged cache over mapped blocks. FAILED_PRECONDITION if there are none.
absl::StatusOr<std::unique_ptr<model::PagedKv>> MapPagedKv(const client::PoolInfo& info,
                                                           std::byte* blocks,
                                                           const model::ModelConfig& config,
                                                           const model::KernelChoice& kernels);

// Executes an answer's copy orders as if one after another.
absl::Status ExecuteCopies(model::PagedKv& kv, std::span<const client::CopyOrder> orders);

}  // namespace quire::runtime

#endif  // QUIRE_WORKER_RUNTIME_PAGED_POOL_H_
