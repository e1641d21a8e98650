// A decoder-only transformer: RMSNorm, rotary positions, grouped-query attention, SwiGLU.
//
//   auto model = Transformer::Create(config, weights);
//   LaunchBatch batch;
//   batch.Add(0, prompt.data(), prompt_length);
//   batch.logit_rows = {prompt_length - 1};
//   (*model)->Forward(batch, attention, logits);
//
// The same model runs over paged blocks (PagedKv) and over a plain contiguous cache (ContiguousKv).
#ifndef QUIRE_WORKER_MODEL_TRANSFORMER_H_
#define QUIRE_WORKER_MODEL_TRANSFORMER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/model/kv_attention.h"
#include "worker/model/layers.h"
#include "worker/model/linear.h"
#include "worker/model/model_config.h"
#include "worker/model/shard.h"
#include "worker/model/weights.h"

namespace quire::model {

// Thread-compatible: one Forward at a time.
class Transformer {
 public:
  static absl::StatusOr<std::unique_ptr<Transformer>> Create(const ModelConfig& config,
                                                             WeightSource& weights);

  // One rank of several: keys, values and attention of its own heads only. `reduce` joins the ranks
  // and must outlive the model.
  static absl::StatusOr<std::unique_ptr<Transformer>> CreateShard(const ModelConfig& config,
                                                                  WeightSource& weights,
                                                                  const Shard& shard,
                                                                  AllReduce& reduce);

  // Computes the batch. `logits` becomes [batch.logit_rows.size()][vocabulary]. INVALID_ARGUMENT
  // for a token outside the vocabulary; otherwise the attention's first error.
  absl::Status Forward(const LaunchBatch& batch, KvAttention& attention,
                       std::vector<float>& logits);

  const ModelConfig& config() const { return config_; }

  // The shape of this rank's part, for its KvAttention; the whole model's if there is one rank.
  const ModelConfig& part() const { return part_; }

  const std::string& fingerprint() const { return fingerprint_; }

 private:
  struct Layer {
    std::vector<float> input_norm;
    Linear q, k, v, o;
    std::vector<float> ffn_norm;
    Linear gate, up, down;
  };

  // Activations of one launch, kept between launches for their capacity.
  struct Activations {
    std::vector<int32_t> positions;
    std::vector<float> x, normed, q, k, v, attended, projected, gate, up;
  };

  Transformer(const ModelConfig& config, const Shard& shard, AllReduce* reduce);
  static absl::StatusOr<std::unique_ptr<Transformer>> Create(const ModelConfig& config,
                                                             WeightSource& weights,
                                                             const Shard& shard, AllReduce* reduce);
  // Adds the ranks' parts of a projection to the activations.
  absl::Status AddProjected();
  absl::Status Load(WeightSource& weights);
  absl::Status LoadLayer(WeightSource& weights, int32_t index);
  absl::Status Embed(const LaunchBatch& batch);
  absl::Status Attend(int32_t index, int32_t rows, KvAttention& attention);
  absl::Status FeedForward(const Layer& layer, int32_t rows);
  void ComputeLogits(const LaunchBatch& batch, std::vector<float>& logits);

  const ModelConfig config_;
  const Shard shard_;
  const ModelConfig part_;
  AllReduce* const reduce_;
  std::string fingerprint_;
  Rope rope_;
  Linear embedding_;
  Linear head_;
  std::vector<float> final_norm_;
  std::vector<Layer> layers_;
  Activations act_;
};

}  // namespace quire::model

#endif  // QUIRE_WORKER_MODEL_TRANSFORMER_H_
