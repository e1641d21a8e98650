// The one thread that lets time pass in the engines.
#ifndef QUIRE_CACHE_SERVICE_RPC_MAINTENANCE_H_
#define QUIRE_CACHE_SERVICE_RPC_MAINTENANCE_H_

#include <chrono>
#include <condition_variable>
#include <thread>

#include "absl/container/flat_hash_set.h"
#include "cache_service/base/clock.h"
#include "cache_service/base/mutex.h"
#include "cache_service/rpc/pool_registry.h"

namespace quire {

// Every call applies what is due by itself; this thread serves those who do not call: leases of
// dead workers, words in control pages, blocks in quarantine. It also logs, once for each pool,
// that somebody damaged its memory.
class Maintenance {
 public:
  // A call may make something due earlier than the thread was told.
  static constexpr Duration kLongestSleep = std::chrono::milliseconds(100);

  Maintenance(const PoolRegistry& pools, const Clock& clock);
  ~Maintenance();
  Maintenance(const Maintenance&) = delete;
  Maintenance& operator=(const Maintenance&) = delete;

 private:
  void Loop();
  // Runs all engines; how long to sleep then.
  Duration RunOnce();
  void WatchMemory(const Pool& pool);

  const PoolRegistry& pools_;
  const Clock& clock_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // Only of the thread.
  absl::flat_hash_set<const Pool*> damaged_;
  std::thread thread_;
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_RPC_MAINTENANCE_H_
