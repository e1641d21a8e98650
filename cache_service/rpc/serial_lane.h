// One thread for work that takes longer than a callback may.
#ifndef QUIRE_CACHE_SERVICE_RPC_SERIAL_LANE_H_
#define QUIRE_CACHE_SERVICE_RPC_SERIAL_LANE_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <thread>

#include "cache_service/base/mutex.h"

namespace quire {

// Runs what is posted, one after another. The destructor runs what is left. Thread-safe.
class SerialLane {
 public:
  SerialLane();
  ~SerialLane();
  SerialLane(const SerialLane&) = delete;
  SerialLane& operator=(const SerialLane&) = delete;

  void Post(std::function<void()> work);

 private:
  void Loop();

  Mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::function<void()>> queue_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_RPC_SERIAL_LANE_H_
