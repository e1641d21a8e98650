#include "cache_service/rpc/maintenance.h"

#include <algorithm>
#include <chrono>
#include <iostream>

namespace quire {
namespace {

constexpr Duration kShortestSleep = std::chrono::milliseconds(1);

}  // namespace

Maintenance::Maintenance(const PoolRegistry& pools, const Clock& clock)
    : pools_(pools), clock_(clock), thread_([this] { Loop(); }) {}

Maintenance::~Maintenance() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

Duration Maintenance::RunOnce() {
  const TimePoint now = clock_.Now();
  Duration sleep = kLongestSleep;
  for (const auto& pool : pools_.pools()) {
    WatchMemory(*pool);
    if (CacheEngine* engine = pool->engine(); engine != nullptr) {
      const TimePoint next = engine->RunMaintenance();
      if (next < AddSaturating(now, sleep)) sleep = next - now;
    }
  }
  return std::max(sleep, kShortestSleep);
}

void Maintenance::WatchMemory(const Pool& pool) {
  const absl::Status status = pool.CheckMemory();
  if (status.ok() || !damaged_.insert(&pool).second) return;
  std::cerr << "quire-server: pool " << pool.name() << ": " << status.message()
            << "; attaches are refused, restart the server\n";
}

void Maintenance::Loop() {
  while (true) {
    const Duration sleep = RunOnce();
    MutexLock lock(mutex_);
    if (!stopping_) changed_.wait_for(mutex_, sleep);
    if (stopping_) return;
  }
}

}  // namespace quire
