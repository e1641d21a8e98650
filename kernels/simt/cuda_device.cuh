// simt.h for nvcc: one function per instruction.
#ifndef QUIRE_KERNELS_SIMT_CUDA_DEVICE_CUH_
#define QUIRE_KERNELS_SIMT_CUDA_DEVICE_CUH_

namespace quire::kernels::cuda {

SIMT_DEVICE int ThreadIndex() { return static_cast<int>(threadIdx.x); }

SIMT_DEVICE int64_t CtaIndex() { return blockIdx.x; }

SIMT_DEVICE int64_t CtaCount() { return gridDim.x; }

SIMT_DEVICE std::byte* SharedMemory() {
  extern __shared__ __align__(16) unsigned char quire_shared[];
  return reinterpret_cast<std::byte*>(quire_shared);
}

SIMT_DEVICE float AsFloat(uint32_t bits) { return __uint_as_float(bits); }

SIMT_DEVICE uint32_t AsBits(float value) { return __float_as_uint(value); }

SIMT_DEVICE float Max(float a, float b) { return fmaxf(a, b); }

SIMT_DEVICE float Exp2(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

SIMT_DEVICE float Log2(float x) { return log2f(x); }

SIMT_DEVICE float Tanh(float x) { return tanhf(x); }

SIMT_DEVICE void SyncCta() { __syncthreads(); }

SIMT_DEVICE void SyncWarp() { __syncwarp(); }

SIMT_DEVICE uint32_t Shuffle(uint32_t value, int lane) {
  return __shfl_sync(0xffffffffu, value, lane);
}

SIMT_DEVICE uint32_t ShuffleXor(uint32_t value, int mask) {
  return __shfl_xor_sync(0xffffffffu, value, mask);
}

SIMT_DEVICE uint32_t Ballot(bool vote) { return __ballot_sync(0xffffffffu, vote); }

SIMT_DEVICE uint32_t SharedAddress(const void* shared) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}

SIMT_DEVICE void CopyAsync16(void* shared, const void* global, bool exists) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(SharedAddress(shared)),
               "l"(global), "r"(exists ? 16 : 0)
               : "memory");
}

SIMT_DEVICE void CopyAsync4(void* shared, const void* global, bool exists) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(SharedAddress(shared)),
               "l"(global), "r"(exists ? 4 : 0)
               : "memory");
}

SIMT_DEVICE void CommitCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int kNewestLeft>
SIMT_DEVICE void WaitCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kNewestLeft) : "memory");
}

SIMT_DEVICE Vec16 Load16(const void* from) { return *static_cast<const Vec16*>(from); }

SIMT_DEVICE void Store16(void* to, const Vec16& value) { *static_cast<Vec16*>(to) = value; }

SIMT_DEVICE void LoadMatrix2(uint32_t* out, const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(out[0]), "=r"(out[1])
               : "r"(SharedAddress(row))
               : "memory");
}

SIMT_DEVICE void LoadMatrix4(uint32_t* out, const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(SharedAddress(row))
               : "memory");
}

SIMT_DEVICE void LoadMatrixTransposed2(uint32_t* out, const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(out[0]), "=r"(out[1])
               : "r"(SharedAddress(row))
               : "memory");
}

SIMT_DEVICE void LoadMatrixTransposed4(uint32_t* out, const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(SharedAddress(row))
               : "memory");
}

SIMT_DEVICE void MmaF16(float* c, const uint32_t* a, const uint32_t* b) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

SIMT_DEVICE void MmaBf16(float* c, const uint32_t* a, const uint32_t* b) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

SIMT_DEVICE uint32_t PackF16(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

SIMT_DEVICE uint32_t PackBf16(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

// A NaN loses its payload.
SIMT_DEVICE float F16ToFloat(uint16_t half) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
  return value;
}

SIMT_DEVICE uint32_t MultiplyF16Pair(uint32_t a, uint32_t b) {
  uint32_t product;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(product) : "r"(a), "r"(b));
  return product;
}

// sm_80 has no conversion: the seven bits moved up to the place of an fp16 are the value times
// 2^-8. There the NaN codes read as 480.
SIMT_DEVICE uint32_t E4m3PairToF16(uint32_t pair) {
#if __CUDA_ARCH__ >= 890
  uint32_t halves;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(static_cast<uint16_t>(pair)));
  return halves;
#else
  const uint32_t spread = __byte_perm(pair, 0, 0x1404);  // bytes to the upper halves
  const uint32_t halves = (spread & 0x80008000u) | ((spread & 0x7f007f00u) >> 1);
  return MultiplyF16Pair(halves, 0x5c005c00u);  // 2^8
#endif
}

// 0x6400 is 1024, whose last mantissa bit counts one: put the byte, made positive, there and
// subtract again.
SIMT_DEVICE uint32_t I8PairToF16(uint32_t pair) {
  const uint32_t biased = __byte_perm(pair ^ 0x8080u, 0x64646464u, 0x4140);
  uint32_t halves;
  asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(halves) : "r"(biased), "r"(0x64806480u));
  return halves;
}

SIMT_DEVICE void AtomicAdd(uint64_t* sum, uint64_t value) {
  atomicAdd(reinterpret_cast<unsigned long long*>(sum), static_cast<unsigned long long>(value));
}

}  // namespace quire::kernels::cuda

#endif  // QUIRE_KERNELS_SIMT_CUDA_DEVICE_CUH_
