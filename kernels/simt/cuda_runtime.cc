// A device through the CUDA runtime. Every call is checked: an error becomes a status with CUDA's
// text, and does not stay behind as the "last error" that a later call would take for its own.
#include "kernels/simt/cuda_runtime.h"

#include <cuda_runtime_api.h>

#include <string>
#include <vector>

namespace quire::kernels::cuda {
namespace {

Status Check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return Status::Ok();
  cudaGetLastError();
  return Status(StatusCode::kInternal, "device",
                std::string(what) + ": " + cudaGetErrorString(error));
}

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int multiprocessors) : multiprocessors_(multiprocessors) {}

  ~CudaDevice() override {
    cudaDeviceSynchronize();
    for (std::byte* memory : locked_) cudaHostUnregister(memory);
    for (cudaEvent_t event : events_) cudaEventDestroy(event);
    for (size_t i = 1; i < streams_.size(); ++i) cudaStreamDestroy(streams_[i]);
  }

  int multiprocessors() const override { return multiprocessors_; }

  Result<std::byte*> Allocate(size_t bytes) override {
    void* memory = nullptr;
    if (Status s = Check(cudaMalloc(&memory, bytes), "allocate"); !s.ok()) return s;
    return static_cast<std::byte*>(memory);
  }

  void Free(std::byte* memory) override { cudaFree(memory); }

  bool IsReachable(const void* memory) const override {
    cudaPointerAttributes attributes{};
    if (!Check(cudaPointerGetAttributes(&attributes, memory), "look up").ok()) return false;
    return attributes.type != cudaMemoryTypeUnregistered;
  }

  Status Copy(StreamId stream, void* to, const void* from, size_t bytes) override {
    return Check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, Stream(stream)), "copy");
  }

  Status Zero(StreamId stream, void* to, size_t bytes) override {
    return Check(cudaMemsetAsync(to, 0, bytes, Stream(stream)), "zero");
  }

 private:
  cudaStream_t Stream(StreamId stream) const { return streams_[static_cast<size_t>(stream)]; }

  cudaEvent_t Event(EventId event) const { return events_[static_cast<size_t>(event)]; }

  Status AddStream() override {
    streams_.push_back(nullptr);
    Status s = Check(cudaStreamCreateWithFlags(&streams_.back(), cudaStreamNonBlocking), "stream");
    if (!s.ok()) streams_.pop_back();
    return s;
  }

  Status AddEvent() override {
    events_.push_back(nullptr);
    Status s = Check(cudaEventCreateWithFlags(&events_.back(), cudaEventDisableTiming), "event");
    if (!s.ok()) events_.pop_back();
    return s;
  }

  Status RecordEvent(EventId event, StreamId stream) override {
    return Check(cudaEventRecord(Event(event), Stream(stream)), "record");
  }

  Status WaitForEvent(StreamId stream, EventId event) override {
    return Check(cudaStreamWaitEvent(Stream(stream), Event(event), 0), "wait");
  }

  Result<bool> QueryEvent(EventId event) override {
    const cudaError_t error = cudaEventQuery(Event(event));
    Status s = Check(error, "query");
    if (error != cudaErrorNotReady && !s.ok()) return s;
    return error == cudaSuccess;
  }

  Status FinishStream(StreamId stream) override {
    return Check(cudaStreamSynchronize(Stream(stream)), "synchronize");
  }

  Status Lock(std::byte* memory, size_t bytes) override {
    locked_.reserve(locked_.size() + 1);
    Status s = Check(cudaHostRegister(memory, bytes, cudaHostRegisterMapped), "page-lock the pool");
    if (s.ok()) locked_.push_back(memory);
    return s;
  }

  Status Unlock(std::byte* memory) override {
    if (Status s = Check(cudaDeviceSynchronize(), "synchronize"); !s.ok()) return s;
    std::erase(locked_, memory);
    return Check(cudaHostUnregister(memory), "unlock the pool");
  }

  Status LaunchKernel(const KernelLaunch& launch) override {
    const auto* kernel = reinterpret_cast<const void*>(launch.kernel);
    constexpr size_t kWithoutAsking = 48 << 10;
    if (launch.shared_bytes > kWithoutAsking) {
      Status s = Check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            static_cast<int>(launch.shared_bytes)),
                       "shared memory");
      if (!s.ok()) return s;
    }
    void* args[] = {const_cast<void*>(launch.args)};
    return Check(cudaLaunchKernel(kernel, dim3(static_cast<unsigned>(launch.ctas)),
                                  dim3(static_cast<unsigned>(launch.threads)), args,
                                  launch.shared_bytes, Stream(launch.stream)),
                 "launch");
  }

  const int multiprocessors_;
  std::vector<cudaStream_t> streams_ = {nullptr};
  std::vector<cudaEvent_t> events_;
  std::vector<std::byte*> locked_;
};

}  // namespace

Result<std::unique_ptr<Device>> OpenDevice() {
  const auto missing = [](const std::string& what) {
    return Status(StatusCode::kUnsupported, "device", what);
  };
  int devices = 0;
  const Status counted = Check(cudaGetDeviceCount(&devices), "this machine has no CUDA device");
  if (!counted.ok()) return missing(counted.message());
  if (devices == 0) return missing("this machine has no CUDA device");
  int major = 0;
  int multiprocessors = 0;
  Status s = Check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0), "open");
  if (s.ok()) {
    s = Check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0), "open");
  }
  if (!s.ok()) return s;
  if (major < 8) {
    return missing("compute capability " + std::to_string(major) + ".x, the kernels need 8.0");
  }
  return std::unique_ptr<Device>(std::make_unique<CudaDevice>(multiprocessors));
}

}  // namespace quire::kernels::cuda
