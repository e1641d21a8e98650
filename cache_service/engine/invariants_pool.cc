// Blocks one by one, and the counts over all.
#include <array>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cache_service/engine/invariants.h"

namespace quire {

void InvariantChecker::CheckBlocks() {
  for (uint32_t index = 0; index < core_.pool_.size(); ++index) CheckBlock(BlockId{index});
}

void InvariantChecker::CheckBlock(BlockId id) {
  const Block& block = core_.pool_.Get(id);
  const Uses& uses = uses_[Index(id)];
  if (block.state != BlockPool::StateOf(block)) Report(1, id, "pool", "the state is not current");
  if (block.table_refs != uses.tables) {
    Report(3, id, "pool",
           absl::StrCat("counts ", block.table_refs, " table references, has ", uses.tables));
  }
  if (block.holds != uses.holds) {
    Report(3, id, "pool", absl::StrCat("counts ", block.holds, " holds, has ", uses.holds));
  }
  const bool fresh = Index(id) >= core_.pool_.fresh_;
  const auto kind = BlockPool::KindOf(block);
  if (!fresh &&
      (kind != BlockPool::PlacedKind(block) ||
       (kind != BlockPool::ListKind::kNone && block.place_worker != block.fence_worker))) {
    Report(1, id, "pool", "is in the wrong list");
  }
  const bool kept = core_.groups_.has_windows && BlockPool::IsKept(block);
  if (core_.groups_.has_windows &&
      (block.Has(kKeptFlag) != kept || core_.pool_.kept().contains(id) != kept)) {
    Report(1, id, "pool", "is wrongly among the kept blocks or not");
  }
  if (block.Has(kDeadFlag) && (block.node != kNoNode || uses.tables + uses.holds > 0)) {
    Report(4, id, "pool", "is dead and in use");
  }
  if (block.node != kNoNode && !block.Has(kVariantFlag) &&
      core_.tree_.BlockOf(block.node, block.group) != id) {
    Report(4, id, "pool", "names a node that does not name it");
  }
  if (block.fence_worker != kNoWorker && block.fence_worker != kManyWorkers &&
      (block.fence_worker >= core_.workers_.size() ||
       core_.workers_[block.fence_worker] == nullptr)) {
    Report(3, id, "pool", "is fenced by a worker that is gone");
  }
}

void InvariantChecker::CheckCounts() {
  const BlockPool& pool = core_.pool_;
  std::array<uint64_t, kBlockStates> states{};
  std::vector<std::array<uint64_t, kBlockStates>> by_group(core_.groups());
  uint64_t free = 0;
  uint64_t evictable = 0;
  uint64_t dead = 0;
  for (uint32_t index = 0; index < pool.size(); ++index) {
    const Block& block = pool.Get(BlockId{index});
    ++states[static_cast<size_t>(block.state)];
    if (block.state != BlockState::kFree) ++by_group[block.group][static_cast<size_t>(block.state)];
    dead += block.Has(kDeadFlag);
    const auto kind = BlockPool::KindOf(block);
    if (block.fence_worker != kNoWorker) continue;
    free += kind == BlockPool::ListKind::kFree;
    evictable += kind == BlockPool::ListKind::kEvictable;
  }
  for (size_t state = 0; state < states.size(); ++state) {
    if (states[state] != pool.CountIn(static_cast<BlockState>(state))) {
      Report(2, std::nullopt, "pool",
             absl::StrCat("state ", state, " counts ", pool.CountIn(static_cast<BlockState>(state)),
                          ", has ", states[state]));
    }
  }
  if (dead != pool.dead()) {
    Report(2, std::nullopt, "pool", absl::StrCat("dead counts ", pool.dead(), ", has ", dead));
  }
  CheckGroupCounts(by_group);
  if (free != pool.OpenFree() || evictable != pool.OpenEvictable()) {
    Report(2, std::nullopt, "pool",
           absl::StrCat("free ", pool.OpenFree(), " has ", free, ", evictable ",
                        pool.OpenEvictable(), " has ", evictable));
  }
}

void InvariantChecker::CheckGroupCounts(
    const std::vector<std::array<uint64_t, kBlockStates>>& by_group) {
  for (uint32_t group = 0; group < by_group.size(); ++group) {
    for (size_t state = 0; state < kBlockStates; ++state) {
      const uint64_t counted = core_.pool_.CountIn(static_cast<BlockState>(state), group);
      if (by_group[group][state] == counted) continue;
      Report(2, std::nullopt, "pool",
             absl::StrCat("group ", group, " counts ", counted, " in state ", state, ", has ",
                          by_group[group][state]));
    }
  }
}

}  // namespace quire
