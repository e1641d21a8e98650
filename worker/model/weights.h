// Where a model's parameters come from.
#ifndef QUIRE_WORKER_MODEL_WEIGHTS_H_
#define QUIRE_WORKER_MODEL_WEIGHTS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace quire::model {

// A source of named tensors. Names follow the usual checkpoints, for example
// "model.layers.0.self_attn.q_proj.weight"; matrices are [out][in], row major.
class WeightSource {
 public:
  virtual ~WeightSource() = default;

  // The tensor as fp32, exactly rows * columns values. NOT_FOUND or INVALID_ARGUMENT (shape)
  // otherwise. Vectors have rows == 1.
  virtual absl::StatusOr<std::vector<float>> Load(std::string_view name, int64_t rows,
                                                  int64_t columns) = 0;

  // Part of the model's fingerprint: sources of different content have different identities.
  virtual std::string identity() const = 0;
};

// Reproducible random weights: every value is a function of seed, name and index only. Norm weights
// are one; matrices keep the variance of their input, queries are scaled up so that attention
// selects, and the output head is scaled up so that logits have clear winners.
class SeededWeights final : public WeightSource {
 public:
  explicit SeededWeights(uint64_t seed) : seed_(seed) {}

  absl::StatusOr<std::vector<float>> Load(std::string_view name, int64_t rows,
                                          int64_t columns) override;
  std::string identity() const override;

 private:
  uint64_t seed_;
};

}  // namespace quire::model

#endif  // QUIRE_WORKER_MODEL_WEIGHTS_H_
