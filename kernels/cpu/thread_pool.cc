#include "kernels/cpu/thread_pool.h"

#include <algorithm>

namespace quire::kernels::cpu {

ThreadPool::ThreadPool(int threads) : threads_(std::max(1, threads)) {
  try {
    workers_.reserve(static_cast<size_t>(threads_ - 1));
    for (int worker = 1; worker < threads_; ++worker) {
      workers_.emplace_back([this, worker] { Serve(worker); });
    }
  } catch (...) {
    Stop();  // those that run: a thread that nobody joins would end the process
    throw;
  }
}

ThreadPool::~ThreadPool() { Stop(); }

void ThreadPool::Stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::Run(int64_t tasks, const Work& work) {
  const bool alone = threads_ == 1 || tasks <= 1;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    work_ = &work;
    tasks_ = tasks;
    next_.store(0, std::memory_order_relaxed);
    if (!alone) {
      busy_ = threads_ - 1;
      ++round_;
    }
  }
  if (!alone) changed_.notify_all();
  TakeTasks(0);
  if (alone) return;
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return busy_ == 0; });
}

void ThreadPool::Serve(int worker) {
  int64_t seen = 0;
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stop_ || round_ != seen; });
    if (stop_) return;
    seen = round_;
    lock.unlock();
    TakeTasks(worker);
    lock.lock();
    if (--busy_ == 0) changed_.notify_all();
  }
}

void ThreadPool::TakeTasks(int worker) {
  while (true) {
    const int64_t task = next_.fetch_add(1, std::memory_order_relaxed);
    if (task >= tasks_) return;
    (*work_)(task, worker);
  }
}

}  // namespace quire::kernels::cpu
