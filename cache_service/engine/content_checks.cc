#include "cache_service/engine/content_checks.h"

namespace quire {
namespace {

// Samples beyond this wait for later hits.
constexpr size_t kMostQueuedSamples = 1024;

}  // namespace

void ContentChecks::Add(BlockId block, uint32_t group) {
  Record& record = records_[block];
  record = {group, next_serial_++, std::nullopt};
  queue_.push_back(CheckOf(block, record));
  if (queue_.size() > 2 * records_.size() + kMostQueuedSamples) DropStale();
}

void ContentChecks::Sample(BlockId block) {
  const auto found = records_.find(block);
  if (found == records_.end() || !found->second.known || queue_.size() > kMostQueuedSamples) return;
  queue_.push_back(CheckOf(block, found->second));
}

std::vector<ContentCheck> ContentChecks::Take(size_t most) {
  std::vector<ContentCheck> batch;
  while (!queue_.empty() && batch.size() < most) {
    const ContentCheck check = queue_.front();
    queue_.pop_front();
    if (IsCurrent(check)) batch.push_back(check);
  }
  return batch;
}

bool ContentChecks::IsCurrent(const ContentCheck& check) const {
  const auto found = records_.find(check.block);
  return found != records_.end() && found->second.serial == check.serial;
}

void ContentChecks::DropStale() {
  std::erase_if(queue_, [this](const ContentCheck& check) { return !IsCurrent(check); });
}

std::vector<ContentCheck> ContentChecks::All() const {
  std::vector<ContentCheck> checks;
  for (const auto& [block, record] : records_) {
    if (record.known) checks.push_back(CheckOf(block, record));
  }
  return checks;
}

ContentChecks::Outcome ContentChecks::Finish(const ContentCheck& check) {
  const auto found = records_.find(check.block);
  if (found == records_.end() || found->second.serial != check.serial) return Outcome::kGone;
  if (!found->second.known) {
    found->second.known = check.computed;
    return Outcome::kStored;
  }
  return *found->second.known == check.computed ? Outcome::kEqual : Outcome::kDifferent;
}

}  // namespace quire
