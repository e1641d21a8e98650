// Checks of single arguments that several calls share: tensors, scales, numbers per head.
#ifndef QUIRE_KERNELS_CHECK_TENSOR_H_
#define QUIRE_KERNELS_CHECK_TENSOR_H_

#include <cstdint>

#include "kernels/kv_layout.h"
#include "kernels/status.h"

namespace quire::kernels {

// fp32, fp16 or bf16: what tensors of a call may be.
Status CheckFloatType(const char* argument, DType dtype);

// A tensor of [rows][heads] runs of `run` elements that lie anywhere.
struct TensorArgument {
  const char* name = nullptr;    // "params.q"; its strides are "params.q_row_stride", ...
  const char* row_name = "row";  // "token": "rows.k_token_stride"
  const void* data = nullptr;
  DType dtype = DType::kF32;
  int64_t rows = 0;
  int64_t row_stride = 0;
  int64_t heads = 1;
  int64_t head_stride = 0;
  int64_t run = 0;
  bool written = false;  // no two runs may share an element
};

// Not null, aligned to its elements, strides not negative and its end inside 63 bits of bytes.
Status CheckTensor(const TensorArgument& tensor);

// That `scales` are there, positive and finite, for the kinds that take them as call parameters.
Status CheckScales(const char* argument, const float* scales, const PagedKvLayout& layout);

// Null, or finite.
Status CheckSlopes(const char* argument, const float* slopes, int64_t heads);
// Null, or finite or -inf, which is a sink that takes nothing.
Status CheckSinks(const char* argument, const float* sinks, int64_t heads);

}  // namespace quire::kernels

#endif  // QUIRE_KERNELS_CHECK_TENSOR_H_
