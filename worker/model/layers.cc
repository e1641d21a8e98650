#include "worker/model/layers.h"

#include <cmath>

namespace quire::model {

void RmsNorm(const float* x, int32_t rows, std::span<const float> weight, float epsilon, float* y) {
  const size_t width = weight.size();
  for (int32_t row = 0; row < rows; ++row, x += width, y += width) {
    float squares = 0;
    for (size_t i = 0; i < width; ++i) squares += x[i] * x[i];
    const float scale = 1.0f / std::sqrt(squares / static_cast<float>(width) + epsilon);
    for (size_t i = 0; i < width; ++i) y[i] = x[i] * scale * weight[i];
  }
}

void SwiGlu(std::span<float> gate, std::span<const float> up) {
  for (size_t i = 0; i < gate.size(); ++i) {
    gate[i] = gate[i] / (1.0f + std::exp(-gate[i])) * up[i];
  }
}

void AddInPlace(std::span<float> x, std::span<const float> y) {
  for (size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

Rope::Rope(int32_t head_dim, float theta) : head_dim_(head_dim) {
  for (int32_t i = 0; i < head_dim; i += 2) {
    frequencies_.push_back(std::pow(double{theta}, -static_cast<double>(i) / head_dim));
  }
}

void Rope::Apply(std::span<const int32_t> positions, int32_t heads, float* x) const {
  const size_t half = frequencies_.size();
  std::vector<float> cosines(half);
  std::vector<float> sines(half);
  for (const int32_t position : positions) {
    for (size_t i = 0; i < half; ++i) {
      cosines[i] = static_cast<float>(std::cos(position * frequencies_[i]));
      sines[i] = static_cast<float>(std::sin(position * frequencies_[i]));
    }
    for (int32_t head = 0; head < heads; ++head, x += head_dim_) {
      for (size_t i = 0; i < half; ++i) {
        const float a = x[i];
        const float b = x[i + half];
        x[i] = a * cosines[i] - b * sines[i];
        x[i + half] = b * cosines[i] + a * sines[i];
      }
    }
  }
}

}  // namespace quire::model
