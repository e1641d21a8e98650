// A device as the host side of the kernels sees it: memory, streams, events and launches. A GPU
// (cuda_runtime.cc) and the emulator (emulated_runtime.cc) differ in the private functions only.
#ifndef QUIRE_KERNELS_SIMT_DEVICE_H_
#define QUIRE_KERNELS_SIMT_DEVICE_H_

#include <cstddef>
#include <map>
#include <vector>

#include "kernels/device_backend.h"

namespace quire::kernels {

// A kernel with its arguments, their type erased.
struct KernelLaunch {
  void (*kernel)() = nullptr;
  void (*run)(void (*kernel)(), const void* args) = nullptr;  // calls it, where that is possible
  const void* args = nullptr;
  size_t args_bytes = 0;
  int64_t ctas = 0;
  int threads = 0;
  size_t shared_bytes = 0;
  StreamId stream = kDefaultStream;
};

// Streams must exist where nothing else is said. Not thread-safe.
class Device {
 public:
  virtual ~Device() = default;

  virtual int multiprocessors() const = 0;

  virtual Result<std::byte*> Allocate(size_t bytes) = 0;
  virtual void Free(std::byte* memory) = 0;

  // True if kernels can use the pointer as it is.
  virtual bool IsReachable(const void* memory) const = 0;
  // Page-locks host memory. Done once per range: ranges that grow or overlap become one.
  Status Pin(std::byte* memory, size_t bytes);

  virtual Status Copy(StreamId stream, void* to, const void* from, size_t bytes) = 0;
  virtual Status Zero(StreamId stream, void* to, size_t bytes) = 0;

  Result<StreamId> NewStream();
  // INVALID_ARGUMENT if there is none.
  Status CheckStream(StreamId stream) const;

  // These check the stream and the event: one that was recorded and not released.
  Result<EventId> Record(StreamId stream);
  Status Wait(StreamId stream, EventId event);
  Result<bool> HasPassed(EventId event);
  Status Synchronize(StreamId stream);

  // Nothing if there is no such event.
  void Release(EventId event);

  template <typename Args>
  Status Launch(void (*kernel)(Args), int64_t ctas, int threads, size_t shared_bytes,
                StreamId stream, const Args& args) {
    const auto run = [](void (*erased)(), const void* given) {
      reinterpret_cast<void (*)(Args)>(erased)(*static_cast<const Args*>(given));
    };
    return Launch({reinterpret_cast<void (*)()>(kernel), run, &args, sizeof(Args), ctas, threads,
                   shared_bytes, stream});
  }

 private:
  // Adds the next in number.
  virtual Status AddStream() = 0;
  virtual Status AddEvent() = 0;

  virtual Status RecordEvent(EventId event, StreamId stream) = 0;
  virtual Status WaitForEvent(StreamId stream, EventId event) = 0;
  virtual Result<bool> QueryEvent(EventId event) = 0;
  virtual Status FinishStream(StreamId stream) = 0;
  virtual Status LaunchKernel(const KernelLaunch& launch) = 0;
  virtual Status Lock(std::byte* memory, size_t bytes) = 0;
  // Waits for the work that may use it.
  virtual Status Unlock(std::byte* memory) = 0;

  Status Launch(const KernelLaunch& launch);
  Status CheckEvent(EventId event) const;

  StreamId streams_ = 1;
  std::vector<bool> is_recorded_;  // per event
  std::vector<EventId> unused_events_;
  std::map<std::byte*, size_t> locked_;
};

}  // namespace quire::kernels

#endif  // QUIRE_KERNELS_SIMT_DEVICE_H_
