#include <cuda_runtime.h>

#include <algorithm>
#include <functional>

#include "tests/kernels/gpu/ceilings.h"

namespace quire::kernels::gpu {
namespace {

constexpr int kThreads = 512;
constexpr int kRepeats = 10;

// Four loads in flight a thread; the sum keeps the compiler from leaving them out.
__global__ void ReadAll(const uint4* data, size_t count, uint32_t* sink) {
  const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  uint32_t sum = 0;
  for (; i + 3 * stride < count; i += 4 * stride) {
    const uint4 a = __ldg(data + i);
    const uint4 b = __ldg(data + i + stride);
    const uint4 c = __ldg(data + i + 2 * stride);
    const uint4 d = __ldg(data + i + 3 * stride);
    sum += (a.x ^ a.y ^ a.z ^ a.w) + (b.x ^ b.y ^ b.z ^ b.w) + (c.x ^ c.y ^ c.z ^ c.w) +
           (d.x ^ d.y ^ d.z ^ d.w);
  }
  if (sum == 0x12345678u) *sink = sum;
}

// Seconds per call, or negative.
double Time(const std::function<void()>& queue) {
  cudaEvent_t start = nullptr;
  cudaEvent_t end = nullptr;
  cudaEventCreate(&start);
  cudaEventCreate(&end);
  queue();
  cudaEventRecord(start);
  for (int i = 0; i < kRepeats; ++i) queue();
  cudaEventRecord(end);
  float ms = -1;
  const bool ok = cudaEventSynchronize(end) == cudaSuccess &&
                  cudaEventElapsedTime(&ms, start, end) == cudaSuccess;
  cudaEventDestroy(start);
  cudaEventDestroy(end);
  return ok ? 1e-3 * static_cast<double>(ms) / kRepeats : -1;
}

}  // namespace

Ceilings MeasureCeilings(std::byte* memory, size_t bytes) {
  Ceilings ceilings;
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, 0) == cudaSuccess) ceilings.device = properties.name;
  // Larger than any cache, small enough to be quick.
  bytes = std::min(bytes, size_t{8} << 30) / 4096 * 4096;
  const int ctas = std::max(1, properties.multiProcessorCount) * 4;
  const double read = Time([&] {
    ReadAll<<<ctas, kThreads>>>(reinterpret_cast<const uint4*>(memory), bytes / sizeof(uint4),
                                reinterpret_cast<uint32_t*>(memory));
  });
  const double copy = Time(
      [&] { cudaMemcpyAsync(memory + bytes / 2, memory, bytes / 2, cudaMemcpyDeviceToDevice); });
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) ceilings.error = cudaGetErrorString(error);
  if (read > 0) ceilings.read = static_cast<double>(bytes) / read;
  if (copy > 0) ceilings.copy = static_cast<double>(bytes) / copy;
  return ceilings;
}

}  // namespace quire::kernels::gpu
