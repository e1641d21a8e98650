// Launches and copies in the order of the answers, as on a device's stream.
#ifndef QUIRE_WORKER_RUNTIME_LAUNCH_QUEUE_H_
#define QUIRE_WORKER_RUNTIME_LAUNCH_QUEUE_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "cache_service/base/mutex.h"
#include "worker/runtime/executor.h"
#include "worker/runtime/issued.h"
#include "worker/runtime/launch_order.h"
#include "worker/runtime/sampler.h"

namespace quire::runtime {

// One launch. A token that an earlier launch of the queue chooses need not be known when it is
// queued: the queue chooses as the scheduler will, and puts it in.
struct LaunchJob {
  // Token of a row, chosen by then.
  struct Input {
    size_t row = 0;
    std::shared_ptr<const TokenId> token{};
  };

  // The token behind a logit row.
  struct Choice {
    size_t logit_row = 0;
    SamplingParams sampling{};
    SamplePlace place{};
    std::shared_ptr<TokenId> token{};
  };

  LaunchOrder order;
  std::vector<PlannedRows> rows;
  std::vector<Input> inputs;
  std::vector<Choice> choices;
  // The result: [logit_rows][vocabulary].
  std::vector<float> logits;
};

// Used by one thread; works on a thread of its own if it runs in the background.
class LaunchQueue {
 public:
  // Without background every call has finished when it returns.
  LaunchQueue(Executor& executor, bool in_background);
  // Waits for what runs.
  ~LaunchQueue();
  LaunchQueue(const LaunchQueue&) = delete;
  LaunchQueue& operator=(const LaunchQueue&) = delete;

  // An error of either, in the background possibly of an earlier one: nothing later has run.
  absl::Status Copy(std::span<const client::CopyOrder> orders);
  absl::Status Launch(std::unique_ptr<LaunchJob> job);

  // A marker behind all that was queued so far, and whether it was passed.
  uint64_t Marker() const { return queued_; }

  bool Passed(uint64_t marker) const;

  // Launches that were not taken yet.
  size_t launches() const { return launches_; }

  // The oldest launch once it has finished; null: it has not, and `wait` is false.
  absl::StatusOr<std::unique_ptr<LaunchJob>> Take(bool wait);

  // Waits for what runs, and forgets results and errors.
  void Drain();

 private:
  using Work = std::function<absl::Status()>;

  absl::Status Enqueue(Work work);
  void Run();
  absl::Status Execute(LaunchJob& job);

  Executor& executor_;
  const bool in_background_;
  uint64_t queued_ = 0;
  size_t launches_ = 0;

  mutable Mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Work> work_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::unique_ptr<LaunchJob>> finished_ ABSL_GUARDED_BY(mutex_);
  uint64_t passed_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace quire::runtime

#endif  // QUIRE_WORKER_RUNTIME_LAUNCH_QUEUE_H_
