#include "cache_service/engine/content_checks.h"

namespace quire {
namespace {

// Samples beyond this wait for later hits.
constexpr size_t kMostQueuedSamples = 1024;

}  // namespace

void ContentChecks::Add(BlockId block) {
  Record& record = records_[Index(block)];
  ++record.serial;
  record.has_content = true;
  record.is_known = false;
  Enqueue(block);
}

void ContentChecks::Forget(BlockId block) { records_[Index(block)].has_content = false; }

void ContentChecks::Sample(BlockId block) {
  const Record& record = records_[Index(block)];
  if (record.has_content && record.is_known && queued_ <= kMostQueuedSamples) Enqueue(block);
}

void ContentChecks::Enqueue(BlockId block) {
  Record& record = records_[Index(block)];
  if (record.is_queued) return;
  record.is_queued = true;
  (queued_ == 0 ? first_queued_ : records_[last_queued_].next_queued) = Index(block);
  last_queued_ = Index(block);
  ++queued_;
}

std::vector<ContentCheck> ContentChecks::Take(size_t most) {
  std::vector<ContentCheck> batch;
  for (; queued_ > 0 && batch.size() < most; --queued_) {
    const BlockId block{first_queued_};
    Record& record = records_[first_queued_];
    record.is_queued = false;
    first_queued_ = record.next_queued;
    if (record.has_content) batch.push_back({block, 0, record.serial, {}});
  }
  return batch;
}

std::vector<ContentCheck> ContentChecks::All() const {
  std::vector<ContentCheck> checks;
  for (uint32_t index = 0; index < records_.size(); ++index) {
    const Record& record = records_[index];
    if (record.has_content && record.is_known) {
      checks.push_back({BlockId{index}, 0, record.serial, {}});
    }
  }
  return checks;
}

ContentChecks::Outcome ContentChecks::Finish(const ContentCheck& check) {
  Record& record = records_[Index(check.block)];
  if (!record.has_content || record.serial != check.serial) return Outcome::kGone;
  if (!record.is_known) {
    record.known = check.computed;
    record.is_known = true;
    return Outcome::kStored;
  }
  return record.known == check.computed ? Outcome::kEqual : Outcome::kDifferent;
}

}  // namespace quire
