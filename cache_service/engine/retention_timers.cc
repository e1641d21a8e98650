#include "cache_service/engine/retention_timers.h"

#include <algorithm>
#include <optional>

namespace quire {

void RetentionTimers::SaveTimer(BlockId block) {
  if (!journal_->active()) return;
  const auto found = timers_.find(block);
  std::optional<Timer> before;
  if (found != timers_.end()) before = found->second;
  journal_->OnRollback([this, block, before] {
    if (before) {
      timers_[block] = *before;
    } else {
      timers_.erase(block);
    }
  });
}

void RetentionTimers::Set(BlockId block, Duration duration) {
  SaveTimer(block);
  timers_[block] = {duration, TimePoint::max()};
}

void RetentionTimers::Clear(BlockId block) {
  SaveTimer(block);
  timers_.erase(block);
}

void RetentionTimers::Start(BlockId block, TimePoint now) {
  const auto found = timers_.find(block);
  if (found == timers_.end()) return;
  SaveTimer(block);
  found->second.deadline = AddSaturating(now, found->second.duration);
  if (found->second.deadline == TimePoint::max()) return;
  heap_.push_back({found->second.deadline, block});
  std::push_heap(heap_.begin(), heap_.end(), Later);
  if (heap_.size() > 2 * timers_.size() + 64 && !journal_->active()) DropStale();
}

void RetentionTimers::Stop(BlockId block) {
  const auto found = timers_.find(block);
  if (found == timers_.end()) return;
  SaveTimer(block);
  found->second.deadline = TimePoint::max();
}

bool RetentionTimers::Valid(const Entry& entry) const {
  const auto found = timers_.find(entry.block);
  return found != timers_.end() && found->second.deadline == entry.deadline;
}

// Also drops doubles: a timer stopped and started within one moment has two equal entries.
void RetentionTimers::DropStale() {
  std::erase_if(heap_, [this](const Entry& entry) { return !Valid(entry); });
  std::sort(heap_.begin(), heap_.end(), [](const Entry& a, const Entry& b) {
    return a.deadline != b.deadline ? a.deadline < b.deadline : a.block < b.block;
  });
  const auto equal = [](const Entry& a, const Entry& b) {
    return a.deadline == b.deadline && a.block == b.block;
  };
  heap_.erase(std::unique(heap_.begin(), heap_.end(), equal), heap_.end());
}

void RetentionTimers::PopTop() {
  std::pop_heap(heap_.begin(), heap_.end(), Later);
  heap_.pop_back();
}

BlockId RetentionTimers::PopDue(TimePoint now) {
  while (!heap_.empty() && heap_.front().deadline <= now) {
    const Entry entry = heap_.front();
    const bool valid = Valid(entry);
    PopTop();
    if (!valid) continue;
    timers_.erase(entry.block);
    return entry.block;
  }
  return kNoBlock;
}

TimePoint RetentionTimers::NextDue() {
  while (!heap_.empty() && !Valid(heap_.front())) PopTop();
  return heap_.empty() ? TimePoint::max() : heap_.front().deadline;
}

}  // namespace quire
