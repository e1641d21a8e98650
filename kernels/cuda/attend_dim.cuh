// Launches of the attention kernels of one head size; each attend_<D>.cu instantiates one.
#ifndef QUIRE_KERNELS_CUDA_ATTEND_DIM_CUH_
#define QUIRE_KERNELS_CUDA_ATTEND_DIM_CUH_

#include "kernels/cuda/append.cuh"
#include "kernels/cuda/calls.h"
#include "kernels/cuda/decode.cuh"

namespace quire::kernels::QUIRE_SIMT {

template <typename T>
void LaunchTile(Job& job, bool append, int64_t ctas, const AttentionArgs& args) {
  if (append) {
    job.Launch(&AppendKernel<T>, ctas, kAppendThreads, AppendShared<T>::kBytes, args);
  } else {
    job.Launch(&DecodeKernel<T>, ctas, kDecodeThreads, DecodeShared<T>::kBytes, args);
  }
}

template <int kDim>
void LaunchAttention(Job& job, bool append, int64_t ctas, const AttentionArgs& args) {
  switch (args.layout.dtype) {
    case DType::kBF16:
      return LaunchTile<Tile<DType::kBF16, kDim>>(job, append, ctas, args);
    case DType::kF16:
      return LaunchTile<Tile<DType::kF16, kDim>>(job, append, ctas, args);
    case DType::kE4M3:
      return LaunchTile<Tile<DType::kE4M3, kDim>>(job, append, ctas, args);
    case DType::kI8:
      return LaunchTile<Tile<DType::kI8, kDim>>(job, append, ctas, args);
    case DType::kF32:
      break;  // PlainKernel, which is not made per head size
  }
}

}  // namespace quire::kernels::QUIRE_SIMT

#endif  // QUIRE_KERNELS_CUDA_ATTEND_DIM_CUH_
