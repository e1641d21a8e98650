#include "tests/kernels/fake_cuda/fake_cuda.h"

#include <cstdlib>
#include <cstring>
#include <utility>

namespace quire::kernels::testing {

FakeCuda fake_cuda;

namespace {

cudaError_t Return(const char* call) {
  if (fake_cuda.failing != call) return cudaSuccess;
  fake_cuda.failing.clear();
  return fake_cuda.last_error = fake_cuda.failure;
}

// As Return; counts `by` if it worked.
cudaError_t Count(const char* call, int* count, int by) {
  const cudaError_t error = Return(call);
  if (error == cudaSuccess) *count += by;
  return error;
}

}  // namespace
}  // namespace quire::kernels::testing

using quire::kernels::testing::Count;
using quire::kernels::testing::fake_cuda;
using quire::kernels::testing::Return;

struct FakeStream {};

struct FakeEvent {};

cudaError_t cudaGetLastError() { return std::exchange(fake_cuda.last_error, cudaSuccess); }

const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "out of memory" : "failed";
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = fake_cuda.devices;
  return Return("GetDeviceCount");
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  *value = attribute == cudaDevAttrComputeCapabilityMajor ? fake_cuda.major : 132;
  return Return("DeviceGetAttribute");
}

cudaError_t cudaDeviceSynchronize() {
  return Count("DeviceSynchronize", &fake_cuda.synchronizations, 1);
}

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  const cudaError_t error = Count("Malloc", &fake_cuda.allocations, 1);
  if (error == cudaSuccess) *memory = std::malloc(bytes);
  return error;
}

cudaError_t cudaFree(void* memory) {
  std::free(memory);
  return Count("Free", &fake_cuda.allocations, -1);
}

cudaError_t cudaHostRegister(void* memory, size_t bytes, unsigned) {
  const cudaError_t error = Return("HostRegister");
  if (error == cudaSuccess) fake_cuda.registered[memory] = bytes;
  return error;
}

cudaError_t cudaHostUnregister(void* memory) {
  fake_cuda.registered.erase(memory);
  return Return("HostUnregister");
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* memory) {
  attributes->type = cudaMemoryTypeUnregistered;
  for (const auto& [begin, bytes] : fake_cuda.registered) {
    const auto* first = static_cast<const std::byte*>(begin);
    if (memory >= first && memory < first + bytes) attributes->type = cudaMemoryTypeHost;
  }
  return Return("PointerGetAttributes");
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t) {
  std::memmove(to, from, bytes);
  return Return("MemcpyAsync");
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t) {
  std::memset(to, value, bytes);
  return Return("MemsetAsync");
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  const cudaError_t error = Count("StreamCreate", &fake_cuda.streams, 1);
  if (error == cudaSuccess) *stream = new FakeStream;
  return error;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return Count("StreamDestroy", &fake_cuda.streams, -1);
}

cudaError_t cudaStreamSynchronize(cudaStream_t) { return Return("StreamSynchronize"); }

cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) {
  return Return("StreamWaitEvent");
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  const cudaError_t error = Count("EventCreate", &fake_cuda.events, 1);
  if (error == cudaSuccess) *event = new FakeEvent;
  return error;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return Count("EventDestroy", &fake_cuda.events, -1);
}

cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return Return("EventRecord"); }

cudaError_t cudaEventQuery(cudaEvent_t) { return Return("EventQuery"); }

cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int value) {
  fake_cuda.allowed_shared = value;
  return Return("FuncSetAttribute");
}

cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** args, size_t shared,
                             cudaStream_t) {
  fake_cuda.kernel = kernel;
  fake_cuda.ctas = grid.x;
  fake_cuda.threads = block.x;
  fake_cuda.shared = shared;
  std::memcpy(&fake_cuda.argument, args[0], sizeof(int));
  return Return("LaunchKernel");
}
