// The one checker of all engine invariants (E9): tests, debug runs, fuzzing and AuditPool use it.
//
// (1) each block is in exactly one state, and in the list that its state implies
// (2) the counts by state sum to the pool
// (3) a block's holds equal the tables, pins, copies and incomplete releases that name it, and
// claims
//     never exceed free + evictable
// (4) in the tree implies sealed
// (5) in full-attention groups a resident block's parent is resident
// (6) every live sequence belongs to a live lease
// (7) table length = ceil(max(length, reserved) / block_tokens), no hole from the window on
// (8) no block is in two tables unless sealed or shared by fork
// (9) steps, epochs and recency only rise
#ifndef QUIRE_CACHE_SERVICE_ENGINE_INVARIANTS_H_
#define QUIRE_CACHE_SERVICE_ENGINE_INVARIANTS_H_

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "cache_service/engine/admin_calls.h"
#include "cache_service/engine/engine_core.h"

namespace quire {

// Recomputes everything from scratch; changes nothing, ends nothing. Not thread-safe.
class InvariantChecker {
 public:
  explicit InvariantChecker(const EngineCore& core) : core_(core) {}

  AuditReport Check();

 private:
  struct Uses {
    uint32_t tables = 0;
    uint32_t holds = 0;
  };

  void Report(uint32_t rule, std::optional<BlockId> block, std::string owner, std::string message);
  void CheckSequence(const WorkerState& worker, const Sequence& sequence);
  void CheckTable(const Sequence& sequence, uint32_t group, const std::string& owner);
  void CheckPath(const Sequence& sequence, const std::string& owner);
  void CheckWorkers();
  void CheckTree();
  void CheckChildren(NodeId node);
  void CheckBlocks();
  void CheckBlock(BlockId block);
  void CheckOrders();
  uint64_t CheckBand(const EvictionOrder::Band& band, uint8_t number, WorkerSlot slot);
  void CheckCounts();
  void CheckGroupCounts(const std::vector<std::array<uint64_t, kBlockStates>>& by_group);
  void CheckClaims();
  void CheckOwed();
  void CheckDebt(const WorkerState& worker, const Claim& claim);
  void CheckProtection();
  void CheckGuards(NodeId node);
  void CheckBlockers();
  void CheckEvictable(WorkerSlot worker);
  bool HasStandIn(NodeId node) const;
  bool MayTake(NodeId node, WorkerSlot worker) const;
  void CheckWindowBehind(NodeId leaf, WorkerSlot worker);

  const EngineCore& core_;
  AuditReport report_;
  std::vector<Uses> uses_;
  // Length of the sequences that have an unsealed block in their table, to tell forks from errors.
  absl::flat_hash_map<BlockId, std::string> first_owner_;
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_ENGINE_INVARIANTS_H_
