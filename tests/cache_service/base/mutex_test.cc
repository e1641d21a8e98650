#include "cache_service/base/mutex.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace quire {
namespace {

struct GuardedCounter {
  Mutex mutex;
  int value ABSL_GUARDED_BY(mutex) = 0;

  void Add() ABSL_LOCKS_EXCLUDED(mutex) {
    MutexLock lock(mutex);
    ++value;
  }
};

TEST(MutexTest, ExcludesOtherThreads) {
  GuardedCounter counter;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&counter] {
      for (int k = 0; k < 10'000; ++k) counter.Add();
    });
  }
  threads.clear();
  MutexLock lock(counter.mutex);
  EXPECT_EQ(counter.value, 40'000);
}

bool TryOnce(Mutex& mutex) {
  if (!mutex.try_lock()) return false;
  mutex.unlock();
  return true;
}

TEST(MutexTest, TryLockFailsWhileHeldByAnother) {
  Mutex mutex;
  bool acquired = true;
  {
    MutexLock lock(mutex);
    std::jthread([&mutex, &acquired] { acquired = TryOnce(mutex); }).join();
  }
  EXPECT_FALSE(acquired);
  EXPECT_TRUE(TryOnce(mutex));
}

}  // namespace
}  // namespace quire
