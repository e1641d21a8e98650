// Scalar conversions between float and the storage types. Encoding rounds to nearest even.
//
//   bf16, fp16   IEEE: overflow becomes infinity, NaN stays NaN
//   e4m3         no infinity: everything beyond saturates to +-448, NaN is code 0x7f / 0xff
//   int8         symmetric -127..127, saturating; NaN becomes 0
#ifndef QUIRE_KERNELS_DTYPE_H_
#define QUIRE_KERNELS_DTYPE_H_

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/kv_layout.h"

namespace quire::kernels {

constexpr float kE4m3Max = 448.0f;
constexpr float kInt8Max = 127.0f;

QUIRE_HOST_DEVICE inline float Bf16ToFloat(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

QUIRE_HOST_DEVICE inline uint16_t FloatToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

QUIRE_HOST_DEVICE inline float Fp16ToFloat(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1fu;
  const uint32_t mantissa = half & 0x3ffu;
  if (exponent == 0) {
    const float tiny = static_cast<float>(mantissa) * 0x1p-24f;
    return sign != 0 ? -tiny : tiny;
  }
  const uint32_t wide = exponent == 31 ? 255u : exponent + 112u;
  const uint32_t quiet = exponent == 31 && mantissa != 0 ? 0x400000u : 0u;
  return std::bit_cast<float>(sign | (wide << 23) | (mantissa << 13) | quiet);
}

QUIRE_HOST_DEVICE inline uint16_t FloatToFp16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    return static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  }
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {
    // Below 2^-14 the quantum is 2^-24; adding 0.5 puts that quantum at the last mantissa bit.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

QUIRE_HOST_DEVICE inline float E4m3ToFloat(uint8_t code) {
  const uint32_t exponent = (code >> 3) & 0xfu;
  const uint32_t mantissa = code & 7u;
  float magnitude = 0;
  if ((code & 0x7fu) == 0x7fu) {
    magnitude = std::bit_cast<float>(0x7fc00000u);
  } else if (exponent == 0) {
    magnitude = static_cast<float>(mantissa) * 0x1p-9f;
  } else {
    magnitude = std::bit_cast<float>(((exponent + 120u) << 23) | (mantissa << 20));
  }
  return (code & 0x80u) != 0 ? -magnitude : magnitude;
}

QUIRE_HOST_DEVICE inline uint8_t FloatToE4m3(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 24) & 0x80u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint8_t>(sign | 0x7fu);
  if (magnitude >= std::bit_cast<uint32_t>(kE4m3Max)) return static_cast<uint8_t>(sign | 0x7eu);
  if (magnitude < 0x3c800000u) {
    // Below 2^-6 the quantum is 2^-9; adding 2^14 puts that quantum at the last mantissa bit.
    const float shifted = std::bit_cast<float>(magnitude) + 0x1p14f;
    return static_cast<uint8_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x46800000u));
  }
  const uint32_t rounded = magnitude + 0x7ffffu + ((magnitude >> 20) & 1u);
  return static_cast<uint8_t>(sign | ((rounded - 0x3c000000u) >> 20));
}

QUIRE_HOST_DEVICE inline int8_t FloatToInt8(float value) {
  if (std::isnan(value)) return 0;
  if (value >= kInt8Max) return 127;
  if (value <= -kInt8Max) return -127;
  // Adding 1.5 * 2^23 rounds to an integer, to nearest even, in the low bits.
  const uint32_t bits = std::bit_cast<uint32_t>(value + 0x1.8p23f);
  return static_cast<int8_t>(static_cast<int32_t>(bits - 0x4b400000u));
}

// Element `index` of an array of `dtype`, without any scale.
QUIRE_HOST_DEVICE inline float LoadElement(DType dtype, const void* data, int64_t index) {
  const auto* bytes = static_cast<const uint8_t*>(data) + index * ElementBytes(dtype);
  if (dtype == DType::kE4M3) return E4m3ToFloat(*bytes);
  if (dtype == DType::kI8) return static_cast<float>(static_cast<int8_t>(*bytes));
  if (dtype == DType::kF32) {
    float value = 0;
    std::memcpy(&value, bytes, sizeof(value));
    return value;
  }
  uint16_t half = 0;
  std::memcpy(&half, bytes, sizeof(half));
  return dtype == DType::kBF16 ? Bf16ToFloat(half) : Fp16ToFloat(half);
}

QUIRE_HOST_DEVICE inline void StoreElement(DType dtype, void* data, int64_t index, float value) {
  auto* bytes = static_cast<uint8_t*>(data) + index * ElementBytes(dtype);
  if (dtype == DType::kE4M3) {
    *bytes = FloatToE4m3(value);
  } else if (dtype == DType::kI8) {
    *bytes = static_cast<uint8_t>(FloatToInt8(value));
  } else if (dtype == DType::kF32) {
    std::memcpy(bytes, &value, sizeof(value));
  } else {
    const uint16_t half = dtype == DType::kBF16 ? FloatToBf16(value) : FloatToFp16(value);
    std::memcpy(bytes, &half, sizeof(half));
  }
}

}  // namespace quire::kernels

#endif  // QUIRE_KERNELS_DTYPE_H_
