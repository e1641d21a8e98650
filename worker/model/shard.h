// One rank's part of a model whose heads and feed-forward columns are shared out to several ranks.
#ifndef QUIRE_WORKER_MODEL_SHARD_H_
#define QUIRE_WORKER_MODEL_SHARD_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "worker/model/model_config.h"

namespace quire::model {

struct Shard {
  int32_t rank = 0;
  int32_t ranks = 1;
};

// Adds up what all ranks computed of the same rows. All add in the order of the ranks, so that
// every rank gets the same bits, run after run.
class AllReduce {
 public:
  virtual ~AllReduce() = default;

  // `values` becomes the sum over the ranks. Called by all ranks in one order with equal sizes.
  // UNAVAILABLE if a rank is gone: nothing of the launch is of use then.
  virtual absl::Status Sum(std::span<float> values) = 0;
};

// The shape that one rank computes and caches. INVALID_ARGUMENT if heads or ffn cannot be shared
// out evenly.
absl::Status ValidateShards(const ModelConfig& config, int32_t ranks);
ModelConfig PartOf(const ModelConfig& config, int32_t ranks);

// Rows, or columns, of a [rows][columns] matrix that belong to the shard.
std::vector<float> RowsOf(const Shard& shard, std::vector<float> matrix, int32_t rows,
                          int32_t columns);
std::vector<float> ColumnsOf(const Shard& shard, std::vector<float> matrix, int32_t rows,
                             int32_t columns);

}  // namespace quire::model

#endif  // QUIRE_WORKER_MODEL_SHARD_H_
