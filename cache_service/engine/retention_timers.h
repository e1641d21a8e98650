// Retention durations of blocks and the moments at which they run out.
//
// A duration runs from the last use of its block; while the block is held it stands still. Due
// timers are found through a heap whose stale entries are skipped and dropped now and then. Not
// thread-safe.
#ifndef QUIRE_CACHE_SERVICE_ENGINE_RETENTION_TIMERS_H_
#define QUIRE_CACHE_SERVICE_ENGINE_RETENTION_TIMERS_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "cache_service/base/clock.h"
#include "cache_service/engine/journal.h"
#include "cache_service/engine/types.h"

namespace quire {

class RetentionTimers {
 public:
  explicit RetentionTimers(Journal* journal) : journal_(journal) {}

  // Gives `block` a duration, standing still until Start.
  void Set(BlockId block, Duration duration);
  void Clear(BlockId block);
  // The last user let go at `now`.
  void Start(BlockId block, TimePoint now);
  // The block is used again.
  void Stop(BlockId block);

  // A block whose duration has run out by `now`, its timer removed; kNoBlock if there is none.
  BlockId PopDue(TimePoint now);
  // No later than the next due moment; TimePoint::max() if nothing runs.
  TimePoint NextDue();

 private:
  struct Timer {
    Duration duration;
    TimePoint deadline;
  };

  struct Entry {
    TimePoint deadline;
    BlockId block;
  };

  static bool Later(const Entry& a, const Entry& b) { return a.deadline > b.deadline; }

  bool Valid(const Entry& entry) const;
  void DropStale();
  void PopTop();
  void SaveTimer(BlockId block);

  Journal* journal_;
  absl::flat_hash_map<BlockId, Timer> timers_;
  // Every running timer has an entry; others are stale.
  std::vector<Entry> heap_;
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_ENGINE_RETENTION_TIMERS_H_
