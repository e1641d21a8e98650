#include "worker/runtime/launch_queue.h"

#include <utility>

namespace quire::runtime {

LaunchQueue::LaunchQueue(Executor& executor, bool in_background)
    : executor_(executor), in_background_(in_background) {
  if (in_background_) thread_ = std::thread([this] { Run(); });
}

LaunchQueue::~LaunchQueue() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

absl::Status LaunchQueue::Copy(std::span<const client::CopyOrder> orders) {
  return Enqueue([this, copies = std::vector<client::CopyOrder>(orders.begin(), orders.end())] {
    return executor_.Copy(copies);
  });
}

absl::Status LaunchQueue::Launch(std::unique_ptr<LaunchJob> job) {
  ++launches_;
  // std::function wants what it holds to be copyable.
  auto shared = std::make_shared<std::unique_ptr<LaunchJob>>(std::move(job));
  return Enqueue([this, shared] {
    absl::Status status = Execute(**shared);
    if (!status.ok()) return status;
    MutexLock lock(mutex_);
    finished_.push_back(std::move(*shared));
    return status;
  });
}

absl::Status LaunchQueue::Execute(LaunchJob& job) {
  for (const LaunchJob::Input& input : job.inputs) job.order.batch.tokens[input.row] = *input.token;
  const std::vector<model::SequenceTables> tables = job.order.tables();
  if (absl::Status status = executor_.Launch(job.order.batch, tables, job.logits); !status.ok()) {
    return status;
  }
  const auto width = static_cast<size_t>(executor_.config().vocabulary);
  const std::span<const float> logits(job.logits);
  for (const LaunchJob::Choice& choice : job.choices) {
    *choice.token =
        Sample(logits.subspan(choice.logit_row * width, width), choice.sampling, choice.place);
  }
  return absl::OkStatus();
}

absl::Status LaunchQueue::Enqueue(Work work) {
  ++queued_;
  if (!in_background_) {
    const absl::Status status = work();
    MutexLock lock(mutex_);
    passed_ = queued_;
    return status;
  }
  MutexLock lock(mutex_);
  work_.push_back(std::move(work));
  changed_.notify_all();
  return status_;
}

void LaunchQueue::Run() {
  for (;;) {
    Work work;
    bool skip = false;
    {
      MutexLock lock(mutex_);
      while (!stopping_ && work_.empty()) changed_.wait(mutex_);
      if (work_.empty()) return;
      work = std::move(work_.front());
      skip = !status_.ok();
    }
    const absl::Status status = skip ? absl::OkStatus() : work();
    {
      MutexLock lock(mutex_);
      work_.pop_front();
      status_.Update(status);
      ++passed_;
    }
    changed_.notify_all();
  }
}

bool LaunchQueue::Passed(uint64_t marker) const {
  MutexLock lock(mutex_);
  return status_.ok() && passed_ >= marker;
}

absl::StatusOr<std::unique_ptr<LaunchJob>> LaunchQueue::Take(bool wait) {
  MutexLock lock(mutex_);
  while (wait && finished_.empty() && !work_.empty()) changed_.wait(mutex_);
  if (finished_.empty())
    return status_.ok() ? absl::StatusOr<std::unique_ptr<LaunchJob>>(nullptr)
                        : absl::StatusOr<std::unique_ptr<LaunchJob>>(status_);
  std::unique_ptr<LaunchJob> job = std::move(finished_.front());
  finished_.pop_front();
  --launches_;
  return job;
}

void LaunchQueue::Drain() {
  MutexLock lock(mutex_);
  while (!work_.empty()) changed_.wait(mutex_);
  finished_.clear();
  status_ = absl::OkStatus();
  launches_ = 0;
}

}  // namespace quire::runtime
