// Conversion of rows into a pool's storage type, bit for bit as dtype.h does it.
#ifndef QUIRE_KERNELS_CPU_ENCODE_H_
#define QUIRE_KERNELS_CPU_ENCODE_H_

#include <cstddef>
#include <cstdint>

#include "kernels/kv_layout.h"

namespace quire::kernels::cpu {

// Stores `count` (a multiple of 16) elements; one-byte types get value / scale. Returns how many
// NaN were quantised. `from` is fp32, fp16 or bf16.
int64_t EncodeRow(DType from_type, const void* from, DType to_type, void* to, size_t count,
                  float scale);

// Largest |finite element|.
float LargestFinite(DType type, const void* row, size_t count);

}  // namespace quire::kernels::cpu

#endif  // QUIRE_KERNELS_CPU_ENCODE_H_
