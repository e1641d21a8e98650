// The record of one block and its states.
//
//   free -> filling -> pending -> referenced <-> idle -> free
//              |          |           |
//              +------ fenced (released, step not complete) -> free or idle
//
// Any unsealed or pending block of a worker that died while it may still write: quarantined ->
// free. A sealed block that failed a content check: bad until released, then free.
#ifndef QUIRE_CACHE_SERVICE_ENGINE_BLOCK_H_
#define QUIRE_CACHE_SERVICE_ENGINE_BLOCK_H_

#include <cstdint>

namespace quire {

// Slot of a lease in the engine; reused when nothing names it any more.
using WorkerSlot = uint16_t;
inline constexpr WorkerSlot kNoWorker = 0;
inline constexpr WorkerSlot kManyWorkers = 0xFFFF;

using NodeId = uint32_t;
inline constexpr NodeId kNoNode = 0;

enum class BlockState : uint8_t {
  kFree = 0,
  kFenced,
  kQuarantined,
  kFilling,
  kPending,
  kReferenced,
  kIdle,
  kBad,
};
inline constexpr int kBlockStates = 8;

// The list that a block is linked into.
enum class Place : uint8_t {
  kNone = 0,
  kFreeList,  // free for all, or for the one worker whose release fences it
  kBand,      // eviction order, linked by last use
  kLate,      // eviction order, in the heap of those inserted out of order
  kParked,    // evictable, but something depends on it; listed again when nothing does
};

// All zero is a free block that was never used.
struct Block {
  // Recency counter at the moment the last table let go.
  uint64_t last_use;
  // Step of the last incomplete release by fence_worker.
  uint64_t fence_step;
  // Low bits of the step that sealed a pending block.
  uint32_t seal_step;
  // Entries of tables that name the block.
  uint32_t table_refs;
  // Pins and copies.
  uint32_t holds;
  // Links of the list named by place; in the late heap, `prev` is the position.
  uint32_t prev;
  uint32_t next;
  // Node of the prefix tree; kNoNode: not in the tree.
  NodeId node;
  // Milliseconds since the engine started.
  uint32_t idle_since_ms;
  uint32_t allocated_ms;
  // Worker whose tables hold it; kManyWorkers: see BlockPool::holders_.
  WorkerSlot holder;
  // Worker whose incomplete release fences it; kManyWorkers: see BlockPool::fences_.
  WorkerSlot fence_worker;
  // Worker that sealed it, while pending.
  WorkerSlot owner;
  // Worker of the list; kNoWorker: the list for all.
  WorkerSlot place_worker;
  Place place;
  // Band of the eviction order in which it is listed.
  uint8_t band;
  uint8_t priority;
  uint8_t group;
  BlockState state;
  uint16_t flags;

  bool Has(uint16_t flag) const { return (flags & flag) != 0; }

  void Set(uint16_t flag, bool on) {
    flags = static_cast<uint16_t>(on ? flags | flag : flags & ~flag);
  }
};

static_assert(sizeof(Block) == 64, "one cache line per block");

// Block::flags
inline constexpr uint16_t kSealedFlag = 1;
// Sealed by `owner` in a step that is not complete.
inline constexpr uint16_t kPendingFlag = 2;
// Sealed, but no hit can use it any more.
inline constexpr uint16_t kDeadFlag = 4;
// A held leaf needs it in its window: idle, but not evictable now.
inline constexpr uint16_t kGuardedFlag = 8;
inline constexpr uint16_t kQuarantineFlag = 16;
inline constexpr uint16_t kBadFlag = 32;
// A retention duration runs out after the last use (BlockPool::durations_).
inline constexpr uint16_t kTimedFlag = 64;
// Pending copy of content that another worker's blocks already stand for in the tree.
inline constexpr uint16_t kVariantFlag = 128;
// Something below it in the tree cannot be given away, so it cannot either.
inline constexpr uint16_t kBlockedFlag = 256;
// It counts among what blocks its parent.
inline constexpr uint16_t kBlocksParentFlag = 512;
// Its checksum is known or wanted.
inline constexpr uint16_t kChecksumFlag = 1024;
// In the tree, and held, fenced or pending.
inline constexpr uint16_t kClosedFlag = 2048;
// Closed, and not even the worker whose release fences it may take it. Kept where windows are.
inline constexpr uint16_t kFirmFlag = 4096;
// Guarded, and evictable but for that (BlockPool::kept).
inline constexpr uint16_t kKeptFlag = 8192;

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_ENGINE_BLOCK_H_
