#include "worker/runtime/local_executor.h"

#include "worker/runtime/paged_pool.h"

namespace quire::runtime {

absl::Status LocalExecutor::Map(const client::CacheClient& client) {
  auto kv = MapPagedKv(client.pool(), client.blocks(), model_.part(), kernels_);
  if (!kv.ok()) return kv.status();
  kv_ = *std::move(kv);
  return absl::OkStatus();
}

absl::Status LocalExecutor::Copy(std::span<const client::CopyOrder> orders) {
  return ExecuteCopies(*kv_, orders);
}

absl::Status LocalExecutor::Launch(const model::LaunchBatch& batch,
                                   std::span<const model::SequenceTables> tables,
                                   std::vector<float>& logits) {
  if (absl::Status status = kv_->Prepare(batch, tables); !status.ok()) return status;
  return model_.Forward(batch, *kv_, logits);
}

}  // namespace quire::runtime
