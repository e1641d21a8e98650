#include "worker/runtime/paged_pool.h"

#include <vector>

namespace quire::runtime {

absl::StatusOr<std::unique_ptr<model::PagedKv>> MapPagedKv(const client::PoolInfo& info,
                                                           std::byte* blocks,
                                                           const model::ModelConfig& config,
                                                           const model::KernelChoice& kernels) {
  if (blocks == nullptr) {
    return absl::FailedPreconditionError("the pool has no memory to compute in");
  }
  model::PagedPool pool{blocks, info.block_count, info.block_bytes, info.block_tokens, {}};
  for (const client::LayerGroup& group : info.groups) {
    pool.groups.push_back({group.window_tokens, group.layers});
  }
  auto backend = model::MakeKernels(kernels);
  if (!backend.ok()) return backend.status();
  return model::PagedKv::Create(config, pool, *std::move(backend));
}

absl::Status ExecuteCopies(model::PagedKv& kv, std::span<const client::CopyOrder> orders) {
  std::vector<model::GroupCopy> copies;
  for (const client::CopyOrder& order : orders) {
    copies.push_back(
        {order.group, {order.source, order.destination, static_cast<int32_t>(order.tokens)}});
  }
  return kv.CopyBlocks(copies);
}

}  // namespace quire::runtime
