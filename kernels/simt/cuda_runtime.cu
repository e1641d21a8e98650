#include <utility>

#include "kernels/simt/cuda_runtime.cuh"

namespace quire::kernels::cuda {

Status Device::Check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return Status::Ok();
  return Status(StatusCode::kInternal, "device",
                std::string(what) + ": " + cudaGetErrorString(error));
}

Result<std::unique_ptr<Device>> Device::Open(const DeviceOptions&) {
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error != cudaSuccess || devices == 0) {
    return Status(StatusCode::kUnsupported, "device",
                  std::string("this machine has no CUDA device: ") + cudaGetErrorString(error));
  }
  auto device = std::make_unique<Device>();
  int major = 0;
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
  if (major < 8) {
    return Status(StatusCode::kUnsupported, "device",
                  "compute capability " + std::to_string(major) + ".x, the kernels need 8.0");
  }
  Status s = Check(
      cudaDeviceGetAttribute(&device->multiprocessors_, cudaDevAttrMultiProcessorCount, 0), "open");
  if (!s.ok()) return s;
  return Result<std::unique_ptr<Device>>(std::move(device));
}

Device::~Device() {
  cudaDeviceSynchronize();
  for (const auto& [memory, bytes] : pinned_) cudaHostUnregister(memory);
  for (cudaEvent_t event : events_) cudaEventDestroy(event);
  for (size_t i = 1; i < streams_.size(); ++i) cudaStreamDestroy(streams_[i]);
}

Result<std::byte*> Device::Allocate(size_t bytes) {
  void* memory = nullptr;
  if (Status s = Check(cudaMalloc(&memory, bytes), "allocate"); !s.ok()) return s;
  return static_cast<std::byte*>(memory);
}

void Device::Free(std::byte* memory) { cudaFree(memory); }

bool Device::IsReachable(const void* memory) const {
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, memory) != cudaSuccess) {
    cudaGetLastError();  // clears it
    return false;
  }
  return attributes.type != cudaMemoryTypeUnregistered;
}

Status Device::Pin(std::byte* memory, size_t bytes) {
  const auto known = pinned_.find(memory);
  if ((known != pinned_.end() && known->second >= bytes) || IsReachable(memory)) {
    return Status::Ok();
  }
  Status s = Check(cudaHostRegister(memory, bytes, cudaHostRegisterMapped), "page-lock the pool");
  if (s.ok()) pinned_[memory] = bytes;
  return s;
}

Status Device::Copy(StreamId stream, void* to, const void* from, size_t bytes) {
  return Check(
      cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, streams_[static_cast<size_t>(stream)]),
      "copy");
}

Status Device::Zero(StreamId stream, void* to, size_t bytes) {
  return Check(cudaMemsetAsync(to, 0, bytes, streams_[static_cast<size_t>(stream)]), "zero");
}

Result<StreamId> Device::NewStream() {
  cudaStream_t stream = nullptr;
  Status s = Check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  if (!s.ok()) return s;
  streams_.push_back(stream);
  return static_cast<StreamId>(streams_.size() - 1);
}

bool Device::HasStream(StreamId stream) const {
  return stream >= 0 && static_cast<size_t>(stream) < streams_.size();
}

Result<EventId> Device::TakeEvent() {
  if (!unused_events_.empty()) {
    const EventId event = unused_events_.back();
    unused_events_.pop_back();
    return event;
  }
  cudaEvent_t event = nullptr;
  Status s = Check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "event");
  if (!s.ok()) return s;
  events_.push_back(event);
  return static_cast<EventId>(events_.size() - 1);
}

Result<EventId> Device::Record(StreamId stream) {
  Result<EventId> event = TakeEvent();
  if (!event.ok()) return event;
  Status s = Check(
      cudaEventRecord(events_[static_cast<size_t>(*event)], streams_[static_cast<size_t>(stream)]),
      "record");
  if (!s.ok()) return s;
  return event;
}

Status Device::Wait(StreamId stream, EventId event) {
  if (event < 0 || static_cast<size_t>(event) >= events_.size()) {
    return Status::Invalid("event", "there is no event " + std::to_string(event));
  }
  return Check(cudaStreamWaitEvent(streams_[static_cast<size_t>(stream)],
                                   events_[static_cast<size_t>(event)]),
               "wait");
}

Result<bool> Device::HasPassed(EventId event) {
  if (event < 0 || static_cast<size_t>(event) >= events_.size()) {
    return Status::Invalid("event", "there is no event " + std::to_string(event));
  }
  const cudaError_t error = cudaEventQuery(events_[static_cast<size_t>(event)]);
  if (error == cudaErrorNotReady) return false;
  if (Status s = Check(error, "query"); !s.ok()) return s;
  return true;
}

Status Device::Synchronize(StreamId stream) {
  return Check(cudaStreamSynchronize(streams_[static_cast<size_t>(stream)]), "synchronize");
}

}  // namespace quire::kernels::cuda
