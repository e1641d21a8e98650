// Shape of a decoder-only transformer.
#ifndef QUIRE_WORKER_MODEL_MODEL_CONFIG_H_
#define QUIRE_WORKER_MODEL_MODEL_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kernels/kv_layout.h"

namespace quire::model {

using TokenId = uint32_t;

struct ModelConfig {
  int32_t layers = 4;
  int32_t hidden = 128;
  int32_t q_heads = 4;
  int32_t kv_heads = 2;
  int32_t head_dim = 64;
  int32_t ffn = 256;
  int32_t vocabulary = 512;
  float rope_theta = 10000.0f;
  float norm_epsilon = 1e-5f;
  // The output head is the embedding matrix.
  bool tied_head = true;
  // How keys and values are stored; everything else is computed in fp32.
  kernels::DType kv_dtype = kernels::DType::kF32;
  // Attention window per layer in tokens (itself and those before it), 0: full. Empty: all full.
  std::vector<uint32_t> layer_windows;

  uint32_t window(int32_t layer) const {
    return layer_windows.empty() ? 0 : layer_windows[static_cast<size_t>(layer)];
  }

  int32_t q_width() const { return q_heads * head_dim; }

  int32_t kv_width() const { return kv_heads * head_dim; }
};

// INVALID_ARGUMENT names the field and the number.
absl::Status Validate(const ModelConfig& config);

// Of all matrices, of a valid shape.
uint64_t WeightBytes(const ModelConfig& config);

// Layer windows in the pattern "5 window layers, then 1 full layer".
std::vector<uint32_t> FiveToOneWindows(int32_t layers, uint32_t window);

// Names shape and weights; models of equal fingerprint compute equal keys and values.
std::string Fingerprint(const ModelConfig& config, const std::string& weights);

}  // namespace quire::model

#endif  // QUIRE_WORKER_MODEL_MODEL_CONFIG_H_
