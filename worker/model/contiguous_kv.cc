#include "worker/model/contiguous_kv.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "kernels/dtype.h"

namespace quire::model {
namespace {

float RoundTo(kernels::DType dtype, float value) {
  if (dtype == kernels::DType::kBF16) return kernels::Bf16ToFloat(kernels::FloatToBf16(value));
  if (dtype == kernels::DType::kF16) return kernels::Fp16ToFloat(kernels::FloatToFp16(value));
  return value;
}

float Dot(const float* a, const float* b, int32_t count) {
  float sum = 0;
  for (int32_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

ContiguousKv::ContiguousKv(const ModelConfig& config)
    : config_(config), layers_(static_cast<size_t>(config.layers)) {}

absl::Status ContiguousKv::Prepare(const LaunchBatch& batch) {
  if (batch.sequences.size() != 1 || batch.sequences[0].first_position != length_) {
    return absl::InvalidArgumentError(
        absl::StrCat("a contiguous cache of ", length_, " tokens takes one sequence from there"));
  }
  new_rows_ = batch.rows();
  return absl::OkStatus();
}

absl::Status ContiguousKv::Run(int32_t layer, const AttentionRows& rows) {
  Layer& stored = layers_[static_cast<size_t>(layer)];
  Append(stored, rows);
  const auto window = static_cast<int32_t>(config_.window(layer));
  for (int32_t row = 0; row < new_rows_; ++row) {
    const int32_t position = length_ + row;
    const int32_t first_key = window == 0 ? 0 : std::max(0, position - window + 1);
    for (int32_t head = 0; head < config_.q_heads; ++head) {
      Attend(stored, rows, row, head, first_key);
    }
  }
  if (layer + 1 == config_.layers) length_ += new_rows_;
  return absl::OkStatus();
}

void ContiguousKv::Append(Layer& layer, const AttentionRows& rows) const {
  const int64_t count = int64_t{new_rows_} * config_.kv_width();
  for (int64_t i = 0; i < count; ++i) {
    layer.k.push_back(RoundTo(config_.kv_dtype, rows.k[i]));
    layer.v.push_back(RoundTo(config_.kv_dtype, rows.v[i]));
  }
}

void ContiguousKv::Attend(const Layer& layer, const AttentionRows& rows, int32_t row, int32_t head,
                          int32_t first_key) const {
  const int32_t dim = config_.head_dim;
  const int64_t q_offset = (int64_t{row} * config_.q_heads + head) * dim;
  const int64_t kv_head = head / (config_.q_heads / config_.kv_heads);
  const int32_t last_key = length_ + row;
  const float scale = 1.0f / std::sqrt(static_cast<float>(dim));

  std::vector<float> weights;
  float largest = -INFINITY;
  for (int32_t key = first_key; key <= last_key; ++key) {
    const float* k = layer.k.data() + int64_t{key} * config_.kv_width() + kv_head * dim;
    weights.push_back(scale * Dot(rows.q + q_offset, k, dim));
    largest = std::max(largest, weights.back());
  }
  double total = 0;
  for (float& weight : weights) {
    weight = std::exp(weight - largest);
    total += weight;
  }
  float* out = rows.out + q_offset;
  std::fill_n(out, dim, 0.0f);
  for (int32_t key = first_key; key <= last_key; ++key) {
    const float* v = layer.v.data() + int64_t{key} * config_.kv_width() + kv_head * dim;
    const auto share = static_cast<float>(weights[static_cast<size_t>(key - first_key)] / total);
    for (int32_t i = 0; i < dim; ++i) out[i] += share * v[i];
  }
}

}  // namespace quire::model
