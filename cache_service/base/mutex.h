// std::mutex with clang thread-safety annotations.
//
// absl::Mutex is not used: Debian's Abseil is built without TSan, which then reports correct code
// as races; libstdc++'s std::mutex carries no annotations.
#ifndef QUIRE_CACHE_SERVICE_BASE_MUTEX_H_
#define QUIRE_CACHE_SERVICE_BASE_MUTEX_H_

#include <mutex>

#include "absl/base/thread_annotations.h"

namespace quire {

class ABSL_LOCKABLE Mutex {
 public:
  void lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }

  void unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

  bool try_lock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) { return mutex_.try_lock(); }

 private:
  std::mutex mutex_;
};

// Waits use std::condition_variable_any on the Mutex itself.
class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_.lock();
  }

  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_BASE_MUTEX_H_
