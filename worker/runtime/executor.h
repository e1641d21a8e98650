// Where the scheduler's launches and copies run.
#ifndef QUIRE_WORKER_RUNTIME_EXECUTOR_H_
#define QUIRE_WORKER_RUNTIME_EXECUTOR_H_

#include <span>
#include <vector>

#include "absl/status/status.h"
#include "worker/client/cache_client.h"
#include "worker/model/paged_kv.h"

namespace quire::runtime {

// Everything is finished when a call returns, on every rank: that is what makes an applied step
// complete. An error with the reason LEASE_EXPIRED says that the sequences are lost but not the
// executor: unmap, attach again and map. Not thread-safe.
class Executor {
 public:
  virtual ~Executor() = default;

  // Of the whole model.
  virtual const model::ModelConfig& config() const = 0;

  // Uses the memory that the client was granted. To be called before its first step.
  virtual absl::Status Map(const client::CacheClient& client) = 0;
  // No memory is mapped by any other process of this worker afterwards. Before the client attaches
  // again.
  virtual void Unmap() = 0;

  // Executes an answer's copy orders as if one after another.
  virtual absl::Status Copy(std::span<const client::CopyOrder> orders) = 0;

  // tables[i] belongs to batch.sequences[i]. `logits` becomes [logit_rows][vocabulary].
  virtual absl::Status Launch(const model::LaunchBatch& batch,
                              std::span<const model::SequenceTables> tables,
                              std::vector<float>& logits) = 0;
};

}  // namespace quire::runtime

#endif  // QUIRE_WORKER_RUNTIME_EXECUTOR_H_
