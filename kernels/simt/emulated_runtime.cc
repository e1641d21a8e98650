#include "kernels/simt/emulated_runtime.h"

#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/make_backend.h"
#include "kernels/guard.h"
#include "kernels/hash.h"

namespace quire::kernels::emulated {
namespace {

// No machine has more.
constexpr size_t kMostBytes = size_t{1} << 40;

class EmulatedDevice final : public Device {
 public:
  explicit EmulatedDevice(const DeviceOptions& options)
      : options_(options), emulator_(options.emulator), random_(options.late_seed), streams_(1) {}

  int multiprocessors() const override { return 4; }

  Result<std::byte*> Allocate(size_t bytes) override {
    // Sanitizers end the process where `new` would throw.
    if (bytes > kMostBytes) throw std::bad_alloc();
    auto memory = std::make_unique_for_overwrite<std::byte[]>(bytes);
    std::byte* const data = memory.get();
    std::memset(data, 0xff, bytes);  // NaN in every type
    reachable_[data] = bytes;
    owned_[data] = std::move(memory);
    return data;
  }

  void Free(std::byte* memory) override {
    reachable_.erase(memory);
    owned_.erase(memory);
  }

  bool IsReachable(const void* memory) const override {
    const auto* at = static_cast<const std::byte*>(memory);
    auto range = reachable_.upper_bound(at);
    if (range == reachable_.begin()) return false;
    --range;
    return at < range->first + range->second;
  }

  // As cudaMemcpyAsync: pageable memory is read before the call returns, and written before it
  // does.
  Status Copy(StreamId stream, void* to, const void* from, size_t bytes) override {
    if (bytes == 0) return Status::Ok();
    std::function<void()> run = [to, from, bytes] { std::memcpy(to, from, bytes); };
    if (!IsReachable(from)) {
      const auto* first = static_cast<const std::byte*>(from);
      run = [to, held = std::vector<std::byte>(first, first + bytes)] {
        std::memcpy(to, held.data(), held.size());
      };
    }
    if (Status s = Queue(stream, std::move(run)); !s.ok()) return s;
    return IsReachable(to) ? Status::Ok() : FinishStream(stream);
  }

  Status Zero(StreamId stream, void* to, size_t bytes) override {
    return Queue(stream, [to, bytes] { std::memset(to, 0, bytes); });
  }

 private:
  struct Task {
    std::function<void()> run;
    size_t wait_for = 0;  // may run once this recording has passed
  };

  Status AddStream() override {
    streams_.emplace_back();
    return Status::Ok();
  }

  Status AddEvent() override {
    recording_.push_back(0);
    return Status::Ok();
  }

  // Each recording has its own number: who waits for an event waits for what was recorded then.
  Status RecordEvent(EventId event, StreamId stream) override {
    const size_t recording = passed_.size();
    passed_.push_back(false);
    recording_[static_cast<size_t>(event)] = recording;
    return Queue(stream, [this, recording] { passed_[recording] = true; });
  }

  Status WaitForEvent(StreamId stream, EventId event) override {
    TasksOf(stream).push_back({[] {}, recording_[static_cast<size_t>(event)]});
    return Fault();
  }

  Result<bool> QueryEvent(EventId event) override {
    const size_t recording = recording_[static_cast<size_t>(event)];
    // Whoever polls must see progress.
    if (!passed_[recording]) RunSome();
    return static_cast<bool>(passed_[recording]);
  }

  Status FinishStream(StreamId stream) override {
    while (!TasksOf(stream).empty() && fault_.empty()) RunSome();
    return Fault();
  }

  Status LaunchKernel(const KernelLaunch& launch) override {
    const auto* args = static_cast<const std::byte*>(launch.args);
    return Queue(launch.stream, [this, launch,
                                 held = std::vector<std::byte>(args, args + launch.args_bytes)] {
      const std::string fault = emulator_.Run(launch.ctas, launch.threads, launch.shared_bytes,
                                              [&] { launch.run(launch.kernel, held.data()); });
      if (!fault.empty() && fault_.empty()) fault_ = fault;
    });
  }

  Status Lock(std::byte* memory, size_t bytes) override {
    reachable_[memory] = bytes;
    return Status::Ok();
  }

  Status Unlock(std::byte* memory) override {
    reachable_.erase(memory);
    return Status::Ok();
  }

  std::deque<Task>& TasksOf(StreamId stream) { return streams_[static_cast<size_t>(stream)]; }

  Status Queue(StreamId stream, std::function<void()> run) {
    std::deque<Task>& tasks = TasksOf(stream);
    tasks.push_back({std::move(run)});
    while (options_.late_seed == 0 && !tasks.empty() && CanRun(tasks)) RunSome();
    return Fault();
  }

  bool CanRun(const std::deque<Task>& stream) const {
    return !stream.empty() && passed_[stream.front().wait_for];
  }

  // The first task of a random stream that may run.
  void RunSome() {
    random_ = Mix64(random_ + kGolden);
    for (size_t i = 0; i < streams_.size(); ++i) {
      std::deque<Task>& stream = streams_[(random_ + i) % streams_.size()];
      if (!CanRun(stream)) continue;
      const Task task = std::move(stream.front());
      stream.pop_front();
      if (fault_.empty()) task.run();
      return;
    }
    fault_ = "every stream waits for an event that none will record";
  }

  Status Fault() const {
    if (fault_.empty()) return Status::Ok();
    return Status(StatusCode::kInternal, "device", fault_);
  }

  const DeviceOptions options_;
  Emulator emulator_;
  uint64_t random_;
  std::map<const std::byte*, size_t> reachable_;
  std::map<std::byte*, std::unique_ptr<std::byte[]>> owned_;
  std::vector<std::deque<Task>> streams_;
  std::vector<size_t> recording_;      // the latest, per event
  std::vector<bool> passed_ = {true};  // per recording; 0 is what needs none
  std::string fault_;
};

}  // namespace

std::unique_ptr<Device> MakeDevice(const DeviceOptions& options) {
  return std::make_unique<EmulatedDevice>(options);
}

Result<std::unique_ptr<DeviceBackend>> MakeBackend(const DeviceOptions& options) {
  return NoThrow("CreateBackend", [&] { return MakeBackend(MakeDevice(options)); });
}

}  // namespace quire::kernels::emulated
