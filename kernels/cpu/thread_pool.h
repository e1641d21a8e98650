// A few threads that share out numbered tasks.
#ifndef QUIRE_KERNELS_CPU_THREAD_POOL_H_
#define QUIRE_KERNELS_CPU_THREAD_POOL_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace quire::kernels::cpu {

// Thread-compatible: one Run at a time. With one thread no thread is started.
class ThreadPool {
 public:
  // task in 0..tasks-1; worker in 0..threads-1 says whose scratch memory to use. Must not throw.
  using Work = std::function<void(int64_t task, int worker)>;

  // Throws std::system_error if the system has no more threads.
  explicit ThreadPool(int threads);
  ~ThreadPool();

  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  // Calls work(task, worker) once per task on all threads, the caller's included, and returns when
  // all are done. Tasks start in order of their numbers.
  void Run(int64_t tasks, const Work& work);

 private:
  void Stop();
  void Serve(int worker);
  void TakeTasks(int worker);

  const int threads_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  int64_t round_ = 0;
  int busy_ = 0;
  bool stop_ = false;
  // Written before a round starts, read by its workers.
  const Work* work_ = nullptr;
  int64_t tasks_ = 0;
  std::atomic<int64_t> next_{0};
  std::vector<std::thread> workers_;
};

}  // namespace quire::kernels::cpu

#endif  // QUIRE_KERNELS_CPU_THREAD_POOL_H_
