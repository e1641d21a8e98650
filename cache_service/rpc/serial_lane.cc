#include "cache_service/rpc/serial_lane.h"

#include <utility>

namespace quire {

SerialLane::SerialLane() : thread_([this] { Loop(); }) {}

SerialLane::~SerialLane() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void SerialLane::Post(std::function<void()> work) {
  {
    MutexLock lock(mutex_);
    queue_.push_back(std::move(work));
  }
  changed_.notify_one();
}

void SerialLane::Loop() {
  while (true) {
    std::function<void()> work;
    {
      MutexLock lock(mutex_);
      while (queue_.empty() && !stopping_) changed_.wait(mutex_);
      if (queue_.empty()) return;
      work = std::move(queue_.front());
      queue_.pop_front();
    }
    work();
  }
}

}  // namespace quire
