#include "kernels/simt/emulated_runtime.h"

#include <utility>

#include "kernels/hash.h"

namespace quire::kernels::emulated {

Result<std::unique_ptr<Device>> Device::Open(const DeviceOptions& options) {
  return std::make_unique<Device>(options);
}

Device::Device(const DeviceOptions& options)
    : options_(options), emulator_(options.emulator), random_(options.late_seed), streams_(1) {}

Result<std::byte*> Device::Allocate(size_t bytes) {
  auto memory = std::make_unique_for_overwrite<std::byte[]>(bytes);
  std::byte* const data = memory.get();
  std::memset(data, 0xff, bytes);  // NaN in every type
  reachable_[data] = bytes;
  owned_[data] = std::move(memory);
  return data;
}

void Device::Free(std::byte* memory) {
  reachable_.erase(memory);
  owned_.erase(memory);
}

bool Device::IsReachable(const void* memory) const {
  const auto* at = static_cast<const std::byte*>(memory);
  auto range = reachable_.upper_bound(at);
  if (range == reachable_.begin()) return false;
  --range;
  return at < range->first + range->second;
}

Status Device::Pin(std::byte* memory, size_t bytes) {
  reachable_[memory] = bytes;
  return Status::Ok();
}

// As cudaMemcpyAsync: pageable memory is read before the call returns, and written before it does.
Status Device::Copy(StreamId stream, void* to, const void* from, size_t bytes) {
  if (bytes == 0) return Status::Ok();
  std::function<void()> run = [to, from, bytes] { std::memcpy(to, from, bytes); };
  if (!IsReachable(from)) {
    const auto* first = static_cast<const std::byte*>(from);
    run = [to, held = std::vector<std::byte>(first, first + bytes)] {
      std::memcpy(to, held.data(), held.size());
    };
  }
  if (Status s = Queue(stream, std::move(run)); !s.ok()) return s;
  return IsReachable(to) ? Status::Ok() : Synchronize(stream);
}

Status Device::Zero(StreamId stream, void* to, size_t bytes) {
  return Queue(stream, [to, bytes] { std::memset(to, 0, bytes); });
}

Result<StreamId> Device::NewStream() {
  streams_.emplace_back();
  return static_cast<StreamId>(streams_.size() - 1);
}

bool Device::HasStream(StreamId stream) const {
  return stream >= 0 && static_cast<size_t>(stream) < streams_.size();
}

Result<EventId> Device::Record(StreamId stream) {
  const auto event = static_cast<EventId>(passed_.size());
  passed_.push_back(false);
  if (Status s = Queue(stream, [this, event] { passed_[static_cast<size_t>(event)] = true; });
      !s.ok()) {
    return s;
  }
  return event;
}

Status Device::Wait(StreamId stream, EventId event) {
  if (event < 0 || static_cast<size_t>(event) >= passed_.size()) {
    return Status::Invalid("event", "there is no event " + std::to_string(event));
  }
  streams_[static_cast<size_t>(stream)].push_back({[] {}, event});
  return Fault();
}

Result<bool> Device::HasPassed(EventId event) {
  if (event < 0 || static_cast<size_t>(event) >= passed_.size()) {
    return Status::Invalid("event", "there is no event " + std::to_string(event));
  }
  // Whoever polls must see progress.
  if (!passed_[static_cast<size_t>(event)]) RunSome();
  return static_cast<bool>(passed_[static_cast<size_t>(event)]);
}

Status Device::Synchronize(StreamId stream) {
  while (!streams_[static_cast<size_t>(stream)].empty() && fault_.empty()) RunSome();
  return Fault();
}

Status Device::Queue(StreamId stream, std::function<void()> run) {
  std::deque<Task>& tasks = streams_[static_cast<size_t>(stream)];
  tasks.push_back({std::move(run), -1});
  while (options_.late_seed == 0 && !tasks.empty() && CanRun(tasks)) RunSome();
  return Fault();
}

bool Device::CanRun(const std::deque<Task>& stream) const {
  if (stream.empty()) return false;
  const EventId event = stream.front().wait_for;
  return event < 0 || passed_[static_cast<size_t>(event)];
}

// The first task of a random stream that may run.
void Device::RunSome() {
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

Status Device::Fault() const {
  if (fault_.empty()) return Status::Ok();
  return Status(StatusCode::kInternal, "device", fault_);
}

}  // namespace quire::kernels::emulated
