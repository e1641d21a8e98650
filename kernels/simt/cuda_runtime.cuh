// Memory, streams, events and launches of the first CUDA device. Every call is checked: an error
// becomes a status with CUDA's text.
#ifndef QUIRE_KERNELS_SIMT_CUDA_RUNTIME_CUH_
#define QUIRE_KERNELS_SIMT_CUDA_RUNTIME_CUH_

#include <cuda_runtime.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/device_backend.h"

namespace quire::kernels::cuda {

struct DeviceOptions {};

// Not thread-safe.
class Device {
 public:
  static Result<std::unique_ptr<Device>> Open(const DeviceOptions&);
  ~Device();

  int multiprocessors() const { return multiprocessors_; }

  Result<std::byte*> Allocate(size_t bytes);
  void Free(std::byte* memory);
  bool IsReachable(const void* memory) const;
  Status Pin(std::byte* memory, size_t bytes);
  Status Copy(StreamId stream, void* to, const void* from, size_t bytes);
  Status Zero(StreamId stream, void* to, size_t bytes);
  Result<StreamId> NewStream();
  bool HasStream(StreamId stream) const;
  Result<EventId> Record(StreamId stream);
  Status Wait(StreamId stream, EventId event);
  Result<bool> HasPassed(EventId event);

  void Release(EventId event) { unused_events_.push_back(event); }

  Status Synchronize(StreamId stream);

  template <typename Args>
  Status Launch(void (*kernel)(Args), int64_t ctas, int threads, size_t shared_bytes,
                StreamId stream, const Args& args) {
    if (ctas == 0) return Status::Ok();
    if (ctas > kMaxCtas) {
      return Status(StatusCode::kUnsupported, "grid", std::to_string(ctas) + " CTAs in one launch");
    }
    constexpr size_t kWithoutAsking = 48 << 10;
    if (shared_bytes > kWithoutAsking) {
      const cudaError_t error = cudaFuncSetAttribute(
          kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes));
      if (error != cudaSuccess) return Check(error, "shared memory");
    }
    kernel<<<static_cast<unsigned>(ctas), static_cast<unsigned>(threads), shared_bytes,
             streams_[static_cast<size_t>(stream)]>>>(args);
    return Check(cudaGetLastError(), "launch");
  }

 private:
  static constexpr int64_t kMaxCtas = (int64_t{1} << 31) - 1;

  static Status Check(cudaError_t error, const char* what);
  Result<EventId> TakeEvent();

  int multiprocessors_ = 0;
  std::vector<cudaStream_t> streams_ = {nullptr};
  std::vector<cudaEvent_t> events_;
  std::vector<EventId> unused_events_;
  std::map<std::byte*, size_t> pinned_;
};

}  // namespace quire::kernels::cuda

#endif  // QUIRE_KERNELS_SIMT_CUDA_RUNTIME_CUH_
