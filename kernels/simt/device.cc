#include "kernels/simt/device.h"

#include <algorithm>
#include <string>

namespace quire::kernels {

Status Device::Pin(std::byte* memory, size_t bytes) {
  std::byte* begin = memory;
  std::byte* end = memory + bytes;
  auto first = locked_.upper_bound(begin);
  if (first != locked_.begin() && std::prev(first)->first + std::prev(first)->second > begin) {
    --first;
  }
  const auto last = locked_.lower_bound(end);
  if (first == last && IsReachable(begin) && IsReachable(end - 1)) return Status::Ok();
  if (first != last && first->first <= begin && first->first + first->second >= end) {
    return Status::Ok();
  }
  for (auto range = first; range != last; range = locked_.erase(range)) {
    begin = std::min(begin, range->first);
    end = std::max(end, range->first + range->second);
    if (Status s = Unlock(range->first); !s.ok()) return s;
  }
  const auto all = static_cast<size_t>(end - begin);
  if (Status s = Lock(begin, all); !s.ok()) return s;
  locked_[begin] = all;
  return Status::Ok();
}

Result<StreamId> Device::NewStream() {
  if (Status s = AddStream(); !s.ok()) return s;
  return streams_++;
}

Status Device::CheckStream(StreamId stream) const {
  if (stream >= 0 && stream < streams_) return Status::Ok();
  return Status::Invalid("stream", "there is no stream " + std::to_string(stream));
}

Status Device::CheckEvent(EventId event) const {
  if (event >= 0 && event < std::ssize(is_recorded_) && is_recorded_[static_cast<size_t>(event)]) {
    return Status::Ok();
  }
  return Status::Invalid("event", "there is no event " + std::to_string(event));
}

Result<EventId> Device::Record(StreamId stream) {
  if (Status s = CheckStream(stream); !s.ok()) return s;
  if (unused_events_.empty()) {
    // Room first, so that nothing can fail between the device's event and its id.
    unused_events_.reserve(is_recorded_.size() + 1);
    is_recorded_.reserve(is_recorded_.size() + 1);
    if (Status s = AddEvent(); !s.ok()) return s;
    unused_events_.push_back(std::ssize(is_recorded_));
    is_recorded_.push_back(false);
  }
  const EventId event = unused_events_.back();
  if (Status s = RecordEvent(event, stream); !s.ok()) return s;
  unused_events_.pop_back();
  is_recorded_[static_cast<size_t>(event)] = true;
  return event;
}

Status Device::Wait(StreamId stream, EventId event) {
  if (Status s = CheckStream(stream); !s.ok()) return s;
  if (Status s = CheckEvent(event); !s.ok()) return s;
  return WaitForEvent(stream, event);
}

Result<bool> Device::HasPassed(EventId event) {
  if (Status s = CheckEvent(event); !s.ok()) return s;
  return QueryEvent(event);
}

Status Device::Synchronize(StreamId stream) {
  if (Status s = CheckStream(stream); !s.ok()) return s;
  return FinishStream(stream);
}

void Device::Release(EventId event) {
  if (!CheckEvent(event).ok()) return;
  is_recorded_[static_cast<size_t>(event)] = false;
  unused_events_.push_back(event);  // there is room: see Record
}

Status Device::Launch(const KernelLaunch& launch) {
  constexpr int64_t kMaxCtas = (int64_t{1} << 31) - 1;
  if (launch.ctas == 0) return Status::Ok();
  if (launch.ctas <= kMaxCtas) return LaunchKernel(launch);
  return Status(StatusCode::kUnsupported, "grid",
                std::to_string(launch.ctas) + " CTAs in one launch");
}

}  // namespace quire::kernels
