// One attached worker: its lease, steps, sequences and what its incomplete steps still hold.
#ifndef QUIRE_CACHE_SERVICE_ENGINE_WORKER_STATE_H_
#define QUIRE_CACHE_SERVICE_ENGINE_WORKER_STATE_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "cache_service/base/clock.h"
#include "cache_service/engine/advance_order.h"
#include "cache_service/engine/block.h"
#include "cache_service/engine/sequence_store.h"
#include "cache_service/engine/step.h"
#include "cache_service/engine/types.h"

namespace quire {

// Fence step of a release that no answer has told yet.
inline constexpr StepNumber kUnreportedStep = ~StepNumber{0};

// What ends when a step is complete.
enum class LogKind : uint8_t {
  kReleased,  // a table of the worker let go of the block
  kCopied,    // the block is source or destination of a copy order
  kSealed,    // the block is pending
};

struct LogEntry {
  StepNumber step;
  BlockId block;
  LogKind kind;
};

// The answer of one step, kept until the worker has applied it.
struct StoredAnswer {
  StepNumber step = 0;
  // Of the operations; tells a repeat from another step of the same number.
  uint64_t fingerprint = 0;
  std::shared_ptr<const StepResult> result;
};

// A table entry that changed outside a step, told with the next answer.
struct UnreportedEntry {
  SequenceHandle sequence = 0;
  uint32_t group = 0;
  uint32_t index = 0;
  BlockId block = kNoBlock;
};

struct WorkerState {
  WorkerSlot slot = kNoWorker;
  std::string name;
  uint64_t incarnation = 0;
  std::string model_fingerprint;
  // Of the caller who attached; absent: acts for all.
  std::optional<std::string> tenant;
  LeaseId lease;
  uint64_t lease_number = 0;
  Duration lease_duration{};
  TimePoint deadline{};
  bool map_memory = true;
  bool lock_step = false;
  // Evidence that the worker maps the pool was seen.
  bool mapped = false;

  StepNumber last_step = 0;
  StepNumber applied_step = 0;
  StepNumber completed_step = 0;
  TimePoint completed_at{};
  std::deque<StoredAnswer> answers;
  // In step order.
  std::deque<LogEntry> log;
  std::vector<UnreportedEntry> unreported;
  // Duplicates whose remap is unreported: fenced without a step.
  std::vector<BlockId> unreported_releases;
  std::vector<SequenceNotice> notices;

  absl::flat_hash_map<SequenceHandle, SequenceStore::Owned> sequences;
  AdvanceOrder advance_order;
  uint64_t table_entries = 0;
  uint64_t claimed = 0;
};

// Blocks that a dead worker may still write.
struct Quarantine {
  std::string worker;
  uint64_t incarnation = 0;
  uint64_t lease_number = 0;
  TimePoint since{};
  std::vector<BlockId> blocks;
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_ENGINE_WORKER_STATE_H_
