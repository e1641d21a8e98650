#include "worker/model/weights.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "kernels/hash.h"

namespace quire::model {
namespace {

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

uint64_t HashName(std::string_view name, uint64_t seed) {
  uint64_t hash = kernels::Mix64(seed + kernels::kGolden);
  for (const char c : name) hash = kernels::Mix64(hash ^ static_cast<uint8_t>(c));
  return hash;
}

// Near normal with mean 0 and variance 1: the sum of four uniform 16-bit numbers.
float UnitNoise(uint64_t bits) {
  float sum = 0;
  for (int i = 0; i < 4; ++i) {
    sum += static_cast<float>((bits >> (16 * i)) & 0xFFFFu) / 65536.0f - 0.5f;
  }
  return sum * std::sqrt(3.0f);
}

float Deviation(std::string_view name, int64_t columns) {
  const float unit = 1.0f / std::sqrt(static_cast<float>(columns));
  if (Contains(name, "q_proj")) return 2.0f * unit;
  if (Contains(name, "o_proj")) return 2.0f * unit;
  // Tied or not, the head multiplies a normalised vector: logits get a deviation of 3.
  if (Contains(name, "embed_tokens") || Contains(name, "lm_head")) {
    return 3.0f * unit;
  }
  return unit;
}

}  // namespace

absl::StatusOr<std::vector<float>> SeededWeights::Load(std::string_view name, int64_t rows,
                                                       int64_t columns) {
  if (rows <= 0 || columns <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(std::string(name), ": shape ", rows, " x ", columns));
  }
  std::vector<float> values(static_cast<size_t>(rows * columns), 1.0f);
  if (Contains(name, "norm")) return values;
  const uint64_t base = HashName(name, seed_);
  const float deviation = Deviation(name, columns);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = deviation * UnitNoise(kernels::Mix64(base + i * kernels::kGolden));
  }
  return values;
}

std::string SeededWeights::identity() const { return absl::StrCat("seed ", seed_); }

}  // namespace quire::model
