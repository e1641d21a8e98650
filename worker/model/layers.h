// The parts of a decoder layer that are not matrix products. Pure functions on rows.
#ifndef QUIRE_WORKER_MODEL_LAYERS_H_
#define QUIRE_WORKER_MODEL_LAYERS_H_

#include <cstdint>
#include <span>
#include <vector>

namespace quire::model {

// y = x / rms(x) * weight for each row of weight.size() values.
void RmsNorm(const float* x, int32_t rows, std::span<const float> weight, float epsilon, float* y);

// gate = silu(gate) * up, element by element.
void SwiGlu(std::span<float> gate, std::span<const float> up);

void AddInPlace(std::span<float> x, std::span<const float> y);

// Rotary position embedding on pairs (i, i + head_dim / 2).
class Rope {
 public:
  Rope(int32_t head_dim, float theta);

  // Rotates [positions.size()][heads][head_dim] in place.
  void Apply(std::span<const int32_t> positions, int32_t heads, float* x) const;

 private:
  int32_t head_dim_;
  std::vector<double> frequencies_;
};

}  // namespace quire::model

#endif  // QUIRE_WORKER_MODEL_LAYERS_H_
