// The first half of prefill and decode in two processes: computes prompts for another worker.
#ifndef QUIRE_WORKER_RUNTIME_PREFILL_WORKER_H_
#define QUIRE_WORKER_RUNTIME_PREFILL_WORKER_H_

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/client/cache_client.h"
#include "worker/model/paged_kv.h"
#include "worker/model/transformer.h"
#include "worker/runtime/fruitless_leases.h"
#include "worker/runtime/sampler.h"

namespace quire::runtime {

// Computes a prompt into the shared pool, commits it and reports it complete, so that every worker
// of the pool finds its whole blocks. The sequence is kept, and with it the blocks, until the other
// worker's begin has been answered. The client must be in lock-step mode. Not thread-safe.
class PrefillWorker {
 public:
  static absl::StatusOr<std::unique_ptr<PrefillWorker>> Create(client::CacheClient& client,
                                                               model::Transformer& model,
                                                               uint32_t chunk_tokens,
                                                               const model::KernelChoice& kernels);

  // When it returns, the prompt is public. A shortage is POOL_EXHAUSTED, a server that ends
  // DRAINING: the other worker then has to compute the prompt itself. A restarted server is
  // attached to again, a few times.
  absl::Status Compute(uint64_t id, const std::vector<TokenId>& prompt);

  // The other worker holds the blocks now. An unknown id is ignored.
  absl::Status Release(uint64_t id);
  // Nobody will begin what is kept.
  absl::Status ReleaseAll();

  // Prompt tokens that were computed and not found.
  uint64_t computed_tokens() const { return computed_tokens_; }

 private:
  PrefillWorker(client::CacheClient& client, model::Transformer& model, uint32_t chunk_tokens,
                const model::KernelChoice& kernels)
      : client_(client), model_(model), chunk_tokens_(chunk_tokens), kernels_(kernels) {}

  absl::Status MapPool();
  absl::Status StartOver(const absl::Status& cause);
  absl::Status Finish(client::Step step);
  absl::Status TryToCompute(uint64_t id, const std::vector<TokenId>& prompt);
  absl::StatusOr<client::StepAnswer> Call(client::Step step);
  absl::Status Launch(client::SequenceHandle sequence, const std::vector<TokenId>& prompt,
                      uint32_t first);

  client::CacheClient& client_;
  model::Transformer& model_;
  const uint32_t chunk_tokens_;
  const model::KernelChoice kernels_;
  FruitlessLeases leases_;
  std::unique_ptr<model::PagedKv> kv_;
  std::unordered_map<uint64_t, client::SequenceHandle> kept_;
  client::SequenceHandle last_handle_ = 0;
  uint64_t computed_tokens_ = 0;
};

}  // namespace quire::runtime

#endif  // QUIRE_WORKER_RUNTIME_PREFILL_WORKER_H_
