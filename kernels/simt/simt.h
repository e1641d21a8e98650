// All that device code may use of CUDA. Under nvcc these are thin wrappers of instructions; under a
// C++ compiler they run in the emulator (emulator.h), so that the same sources are tested without
// a device.
//
// Everything lives in namespace quire::kernels::QUIRE_SIMT, which is `cuda` or `emulated`: one
// program may hold both. Kernels are functions SIMT_KERNEL void Name(const Args args) whose
// arguments are one trivially copyable struct.
//
//   ThreadIndex, CtaIndex, CtaCount, Lane, Warp     functions, not variables
//   SharedMemory                                    the dynamic buffer of the launch
//   SyncCta, SyncWarp, Shuffle, ShuffleXor, Ballot  all 32 lanes of a warp take part
//   CopyAsync16/4, CommitCopies, WaitCopies<N>      cp.async; `exists` false writes zeros
//   LoadMatrix2/4, LoadMatrixTransposed2/4          ldmatrix; each lane gives one row's address
//   MmaF16, MmaBf16                                 m16n8k16, fp32 sums: c += a * b
//   PackF16, PackBf16                               two floats to one register, low one first
//   F16ToFloat                                      exact but for a NaN's payload
//   E4m3PairToF16, I8PairToF16                      two bytes to two halves, exact
#ifndef QUIRE_KERNELS_SIMT_SIMT_H_
#define QUIRE_KERNELS_SIMT_SIMT_H_

#include <cstddef>
#include <cstdint>

#ifdef __CUDACC__
#define QUIRE_SIMT cuda
#define SIMT_DEVICE __device__ __forceinline__
#define SIMT_KERNEL __global__
#define SIMT_BOUNDS(threads, registers) __maxnreg__(registers)
#define SIMT_UNROLL _Pragma("unroll")
#define SIMT_NO_UNROLL _Pragma("unroll 1")
#else
#define QUIRE_SIMT emulated
#define SIMT_DEVICE inline
#define SIMT_KERNEL inline
#define SIMT_BOUNDS(threads, registers)
#define SIMT_UNROLL
#define SIMT_NO_UNROLL
#endif

namespace quire::kernels::QUIRE_SIMT {

constexpr int kWarpLanes = 32;

// Moved by one instruction; its address must be a multiple of 16.
struct alignas(16) Vec16 {
  uint32_t x[4];
};

}  // namespace quire::kernels::QUIRE_SIMT

#ifdef __CUDACC__
#include "kernels/simt/cuda_device.cuh"
#else
#include "kernels/simt/emulated_device.h"
#endif

namespace quire::kernels::QUIRE_SIMT {

SIMT_DEVICE int Lane() { return ThreadIndex() % kWarpLanes; }

SIMT_DEVICE int Warp() { return ThreadIndex() / kWarpLanes; }

SIMT_DEVICE float ShuffleXor(float value, int mask) {
  return AsFloat(ShuffleXor(AsBits(value), mask));
}

SIMT_DEVICE float WarpMax(float value) {
  for (int mask = 16; mask > 0; mask /= 2) value = Max(value, ShuffleXor(value, mask));
  return value;
}

SIMT_DEVICE float WarpSum(float value) {
  for (int mask = 16; mask > 0; mask /= 2) value += ShuffleXor(value, mask);
  return value;
}

// Over the four lanes that share a row of an mma accumulator.
SIMT_DEVICE float QuadMax(float value) {
  value = Max(value, ShuffleXor(value, 1));
  return Max(value, ShuffleXor(value, 2));
}

SIMT_DEVICE float QuadSum(float value) {
  value += ShuffleXor(value, 1);
  return value + ShuffleXor(value, 2);
}

SIMT_DEVICE uint64_t WarpSum(uint64_t value) {
  for (int mask = 16; mask > 0; mask /= 2) {
    const uint32_t low = ShuffleXor(static_cast<uint32_t>(value), mask);
    const uint32_t high = ShuffleXor(static_cast<uint32_t>(value >> 32), mask);
    value += (static_cast<uint64_t>(high) << 32) | low;
  }
  return value;
}

}  // namespace quire::kernels::QUIRE_SIMT

#endif  // QUIRE_KERNELS_SIMT_SIMT_H_
