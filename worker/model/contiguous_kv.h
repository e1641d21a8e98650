// Keys and values of one sequence in plain contiguous memory, for verification.
#ifndef QUIRE_WORKER_MODEL_CONTIGUOUS_KV_H_
#define QUIRE_WORKER_MODEL_CONTIGUOUS_KV_H_

#include <vector>

#include "worker/model/kv_attention.h"

namespace quire::model {

// The obvious cache: position p of layer l is row p of array l. It knows nothing of blocks, tables
// or kernels, so that an error in those cannot repeat itself here. Values are rounded to the
// model's kv_dtype when stored. Copying the object copies the sequence. Not thread-safe.
//
// A batch must hold exactly one sequence, and begin where the cache ends: first_position ==
// length(). The new length holds once the last layer has run.
class ContiguousKv final : public KvAttention {
 public:
  explicit ContiguousKv(const ModelConfig& config);

  // To be called before each Forward.
  absl::Status Prepare(const LaunchBatch& batch);
  absl::Status Run(int32_t layer, const AttentionRows& rows) override;

  int32_t length() const { return length_; }

 private:
  struct Layer {
    std::vector<float> k;
    std::vector<float> v;
  };

  void Append(Layer& layer, const AttentionRows& rows) const;
  void Attend(const Layer& layer, const AttentionRows& rows, int32_t row, int32_t head,
              int32_t first_key) const;

  ModelConfig config_;
  std::vector<Layer> layers_;
  int32_t length_ = 0;
  int32_t new_rows_ = 0;
};

}  // namespace quire::model

#endif  // QUIRE_WORKER_MODEL_CONTIGUOUS_KV_H_
