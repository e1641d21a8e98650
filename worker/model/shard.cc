#include "worker/model/shard.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace quire::model {

absl::Status ValidateShards(const ModelConfig& config, int32_t ranks) {
  const std::pair<const char*, int32_t> sizes[] = {
      {"q_heads", config.q_heads}, {"kv_heads", config.kv_heads}, {"ffn", config.ffn}};
  if (ranks < 1) return absl::InvalidArgumentError(absl::StrCat("ranks is ", ranks));
  for (const auto& [field, value] : sizes) {
    if (value % ranks == 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(field, " ", value, " cannot be shared out to ", ranks, " ranks"));
  }
  return absl::OkStatus();
}

ModelConfig PartOf(const ModelConfig& config, int32_t ranks) {
  ModelConfig part = config;
  part.q_heads /= ranks;
  part.kv_heads /= ranks;
  part.ffn /= ranks;
  return part;
}

std::vector<float> RowsOf(const Shard& shard, std::vector<float> matrix, int32_t rows,
                          int32_t columns) {
  if (shard.ranks == 1) return matrix;
  const int64_t part = int64_t{rows / shard.ranks} * columns;
  return {matrix.begin() + shard.rank * part, matrix.begin() + (shard.rank + 1) * part};
}

std::vector<float> ColumnsOf(const Shard& shard, std::vector<float> matrix, int32_t rows,
                             int32_t columns) {
  if (shard.ranks == 1) return matrix;
  const int32_t part = columns / shard.ranks;
  std::vector<float> own;
  own.reserve(static_cast<size_t>(rows) * static_cast<size_t>(part));
  for (int64_t row = 0; row < rows; ++row) {
    const auto first = matrix.begin() + row * columns + int64_t{shard.rank} * part;
    own.insert(own.end(), first, first + part);
  }
  return own;
}

}  // namespace quire::model
