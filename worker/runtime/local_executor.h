// The whole model in this process.
#ifndef QUIRE_WORKER_RUNTIME_LOCAL_EXECUTOR_H_
#define QUIRE_WORKER_RUNTIME_LOCAL_EXECUTOR_H_

#include <memory>

#include "worker/model/kernel_choice.h"
#include "worker/model/transformer.h"
#include "worker/runtime/executor.h"

namespace quire::runtime {

class LocalExecutor final : public Executor {
 public:
  // The model must outlive it.
  LocalExecutor(model::Transformer& model, const model::KernelChoice& kernels)
      : model_(model), kernels_(kernels) {}

  const model::ModelConfig& config() const override { return model_.config(); }

  absl::Status Map(const client::CacheClient& client) override;

  void Unmap() override { kv_.reset(); }

  absl::Status Copy(std::span<const client::CopyOrder> orders) override;
  absl::Status Launch(const model::LaunchBatch& batch,
                      std::span<const model::SequenceTables> tables,
                      std::vector<float>& logits) override;

 private:
  model::Transformer& model_;
  const model::KernelChoice kernels_;
  std::unique_ptr<model::PagedKv> kv_;
};

}  // namespace quire::runtime

#endif  // QUIRE_WORKER_RUNTIME_LOCAL_EXECUTOR_H_
