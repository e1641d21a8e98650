#include "cache_service/rpc/drain_state.h"

#include <algorithm>
#include <chrono>

namespace quire {

void DrainState::Begin(Duration deadline) {
  {
    MutexLock lock(mutex_);
    draining_ = true;
    deadline_ = std::min(deadline_, AddSaturating(clock_.Now(), deadline));
  }
  changed_.notify_all();
}

void DrainState::WaitUntilOver(const std::function<uint64_t()>& live) {
  constexpr auto kPoll = std::chrono::milliseconds(10);
  MutexLock lock(mutex_);
  while (!draining_) changed_.wait(mutex_);
  while (clock_.Now() < deadline_ && live() > 0) changed_.wait_for(mutex_, kPoll);
}

}  // namespace quire
