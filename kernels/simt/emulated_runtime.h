// The host side of the emulator: memory, streams, events and launches, as cuda_runtime.cuh has them
// for a device.
//
// With `late_seed` nothing runs when it is queued. Someone who waits makes work run, stream by
// stream in a random order that events allow, and no more of it than needed: a missing event shows
// as wrong bytes.
#ifndef QUIRE_KERNELS_SIMT_EMULATED_RUNTIME_H_
#define QUIRE_KERNELS_SIMT_EMULATED_RUNTIME_H_

#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/device_backend.h"
#include "kernels/simt/emulator.h"

namespace quire::kernels::emulated {

struct DeviceOptions {
  EmulatorOptions emulator;
  uint64_t late_seed = 0;  // 0: everything runs as soon as it is queued
};

// Not thread-safe.
class Device {
 public:
  static Result<std::unique_ptr<Device>> Open(const DeviceOptions& options);

  explicit Device(const DeviceOptions& options);

  int multiprocessors() const { return 4; }

  Result<std::byte*> Allocate(size_t bytes);
  void Free(std::byte* memory);

  // True if kernels can use the pointer as it is.
  bool IsReachable(const void* memory) const;
  // Page-locks host memory, once per range.
  Status Pin(std::byte* memory, size_t bytes);

  Status Copy(StreamId stream, void* to, const void* from, size_t bytes);
  Status Zero(StreamId stream, void* to, size_t bytes);

  Result<StreamId> NewStream();
  bool HasStream(StreamId stream) const;
  Result<EventId> Record(StreamId stream);
  Status Wait(StreamId stream, EventId event);
  Result<bool> HasPassed(EventId event);

  void Release(EventId) {}

  Status Synchronize(StreamId stream);

  template <typename Args>
  Status Launch(void (*kernel)(Args), int64_t ctas, int threads, size_t shared_bytes,
                StreamId stream, const Args& args) {
    if (ctas == 0) return Status::Ok();
    return Queue(stream, [this, kernel, ctas, threads, shared_bytes, args] {
      const std::string fault =
          emulator_.Run(ctas, threads, shared_bytes, [kernel, &args] { kernel(args); });
      if (!fault.empty() && fault_.empty()) fault_ = fault;
    });
  }

 private:
  struct Task {
    std::function<void()> run;
    EventId wait_for = -1;  // may run once this has passed
  };

  Status Queue(StreamId stream, std::function<void()> run);
  bool CanRun(const std::deque<Task>& stream) const;
  void RunSome();
  Status Fault() const;

  const DeviceOptions options_;
  Emulator emulator_;
  uint64_t random_;
  std::map<const std::byte*, size_t> reachable_;
  std::map<std::byte*, std::unique_ptr<std::byte[]>> owned_;
  std::vector<std::deque<Task>> streams_;
  std::vector<bool> passed_;  // per event
  std::string fault_;
};

}  // namespace quire::kernels::emulated

#endif  // QUIRE_KERNELS_SIMT_EMULATED_RUNTIME_H_
