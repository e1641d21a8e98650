// Whether the server drains, and until when.
#ifndef QUIRE_CACHE_SERVICE_RPC_DRAIN_STATE_H_
#define QUIRE_CACHE_SERVICE_RPC_DRAIN_STATE_H_

#include <condition_variable>
#include <functional>

#include "cache_service/base/clock.h"
#include "cache_service/base/mutex.h"

namespace quire {

// Thread-safe.
class DrainState {
 public:
  explicit DrainState(const Clock& clock) : clock_(clock) {}

  // Begins, or moves the deadline nearer. Never blocks.
  void Begin(Duration deadline);

  // Blocks until a drain began and either nothing is live any more or its deadline has passed.
  void WaitUntilOver(const std::function<uint64_t()>& live);

 private:
  const Clock& clock_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  TimePoint deadline_ ABSL_GUARDED_BY(mutex_) = TimePoint::max();
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_RPC_DRAIN_STATE_H_
