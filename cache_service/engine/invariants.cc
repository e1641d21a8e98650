#include "cache_service/engine/invariants.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"

namespace quire {
namespace {

constexpr size_t kMostFindings = 1000;

std::string OwnerOf(const WorkerState& worker, const Sequence& sequence) {
  return absl::StrCat(worker.name, "/", sequence.handle);
}

}  // namespace

void InvariantChecker::Report(uint32_t rule, std::optional<BlockId> block, std::string owner,
                              std::string message) {
  if (report_.findings.size() < kMostFindings) {
    report_.findings.push_back({rule, block, std::move(owner), std::move(message)});
  }
}

AuditReport InvariantChecker::Check() {
  uses_.resize(core_.pool_.size());
  CheckWorkers();
  for (const auto& [id, pin] : core_.pins_) {
    for (const BlockId block : pin.blocks) ++uses_[Index(block)].holds;
  }
  CheckTree();
  CheckBlocks();
  CheckOrders();
  CheckCounts();
  CheckClaims();
  if (core_.has_windows_) CheckProtection();
  if (!core_.only_windows_) {
    CheckBlockers();
    for (const auto& worker : core_.workers_) {
      CheckEvictable(worker == nullptr ? kNoWorker : worker->slot);
    }
  }
  report_.blocks_checked = core_.pool_.size();
  return std::move(report_);
}

// --- Sequences ---

void InvariantChecker::CheckWorkers() {
  uint64_t sequences = 0;
  for (const auto& worker : core_.workers_) {
    if (worker == nullptr) continue;
    const auto lease = core_.leases_.find(worker->lease);
    if (lease == core_.leases_.end() || lease->second != worker->slot) {
      Report(6, std::nullopt, worker->name, "the worker has no live lease");
    }
    if (worker->completed_step > worker->applied_step || worker->applied_step > worker->last_step) {
      Report(9, std::nullopt, worker->name, "completed <= applied <= last step does not hold");
    }
    StepNumber before = worker->completed_step;
    for (const LogEntry& entry : worker->log) {
      if (entry.step < before) Report(9, entry.block, worker->name, "the log is out of order");
      before = entry.step;
      if (entry.kind == LogKind::kCopied) ++uses_[Index(entry.block)].holds;
    }
    uint64_t entries = 0;
    for (const auto& [handle, sequence] : worker->sequences) {
      CheckSequence(*worker, *sequence);
      for (const std::vector<BlockId>& table : sequence->tables) entries += table.size();
      ++sequences;
    }
    if (entries != worker->table_entries) {
      Report(3, std::nullopt, worker->name,
             absl::StrCat("counts ", worker->table_entries, " table entries, has ", entries));
    }
  }
  if (sequences != core_.live_sequences_) {
    Report(6, std::nullopt, "engine",
           absl::StrCat("counts ", core_.live_sequences_, " sequences, has ", sequences));
  }
}

void InvariantChecker::CheckSequence(const WorkerState& worker, const Sequence& sequence) {
  const std::string owner = OwnerOf(worker, sequence);
  if (sequence.worker != worker.slot) Report(6, std::nullopt, owner, "names another worker");
  if (sequence.committed > sequence.length || sequence.length > sequence.reserved) {
    Report(7, std::nullopt, owner,
           absl::StrCat("committed ", sequence.committed, ", length ", sequence.length,
                        ", reserved ", sequence.reserved, " are out of order"));
  }
  for (uint32_t group = 0; group < core_.groups(); ++group) CheckTable(sequence, group, owner);
  CheckPath(sequence, owner);
}

void InvariantChecker::CheckTable(const Sequence& sequence, uint32_t group,
                                  const std::string& owner) {
  const std::vector<BlockId>& table = sequence.tables[group];
  const uint32_t expected = core_.BlocksFor(std::max(sequence.length, sequence.reserved));
  if (table.size() != expected) {
    Report(7, std::nullopt, owner,
           absl::StrCat("table of group ", group, " has ", table.size(), " entries, expected ",
                        expected));
  }
  for (uint32_t i = 0; i < table.size(); ++i) {
    const bool left = i < sequence.window_start[group];
    if (left != (table[i] == kNoBlock)) {
      Report(7, std::nullopt, owner,
             absl::StrCat("entry ", i, " of group ", group,
                          left ? " should have left" : " is a hole"));
    }
    if (table[i] == kNoBlock) continue;
    if (Index(table[i]) >= uses_.size()) {
      Report(7, table[i], owner, "the id is outside the pool");
      continue;
    }
    ++uses_[Index(table[i])].tables;
    const Block& block = core_.pool_.Get(table[i]);
    if (block.group != group) Report(7, table[i], owner, "the block belongs to another group");
    if (block.Has(kSealedFlag)) continue;
    // Unsealed blocks are shared by forks only, and those are not past their committed length.
    const bool shared_by_fork =
        uint64_t{i} * core_.options_.block_tokens < sequence.committed || !sequence.publishes;
    const auto [first, added] = first_owner_.emplace(table[i], owner);
    if (!added && !shared_by_fork) {
      Report(8, table[i], owner, absl::StrCat("is also in the table of ", first->second));
    }
  }
}

void InvariantChecker::CheckPath(const Sequence& sequence, const std::string& owner) {
  if (!sequence.publishes) return;
  NodeId node = sequence.node;
  for (uint32_t i = sequence.sealed; i-- > 0; node = core_.tree_.Get(node).parent) {
    if (node == kNoNode || !core_.tree_.Get(node).Has(kUsedNodeFlag) ||
        core_.tree_.Get(node).depth != i) {
      Report(4, std::nullopt, owner, absl::StrCat("block ", i, " has no node in the tree"));
      return;
    }
    for (uint32_t group = 0; group < core_.groups(); ++group) {
      const BlockId block = sequence.tables[group][i];
      if (block == kNoBlock) continue;
      const NodeVariant* variant = core_.tree_.VariantOf(node, sequence.worker);
      const bool in_variant = variant != nullptr && variant->blocks[group] == block;
      if (!in_variant && core_.VisibleBlock(node, group, sequence.worker) != block) {
        Report(4, block, owner, absl::StrCat("entry ", i, " is not the block of its content"));
      }
    }
  }
  if (node != sequence.root) Report(4, std::nullopt, owner, "the path does not end at the root");
}

// --- Tree ---

void InvariantChecker::CheckTree() {
  const PrefixTree& tree = core_.tree_;
  for (NodeId node = 1; node < tree.end(); ++node) {
    const Node& record = tree.Get(node);
    if (!record.Has(kUsedNodeFlag) || tree.IsRoot(node)) continue;
    const Node& parent = tree.Get(record.parent);
    if (!parent.Has(kUsedNodeFlag) || parent.depth + 1 != record.depth) {
      Report(5, std::nullopt, "tree", absl::StrCat("node ", node, " has no parent"));
    }
    for (uint32_t group = 0; group < core_.groups(); ++group) {
      const BlockId block = tree.BlockOf(node, group);
      if (block == kNoBlock) {
        if (!core_.IsWindow(group)) {
          Report(5, std::nullopt, "tree", absl::StrCat("node ", node, " lacks group ", group));
        }
        continue;
      }
      const Block& held = core_.pool_.Get(block);
      if (held.node != node || held.group != group || held.Has(kVariantFlag)) {
        Report(4, block, "tree", "the block does not name the node that names it");
      }
      if (!held.Has(kSealedFlag)) Report(4, block, "tree", "is in the tree but not sealed");
      const bool pending = record.owner != kNoWorker;
      const bool adopted = held.Has(kPendingFlag) && held.owner == record.owner;
      if (pending != held.Has(kPendingFlag) || (pending && !adopted)) {
        Report(4, block, "tree", "pending does not agree with the node");
      }
    }
    for (const NodeVariant& variant : tree.Variants(node)) {
      for (const BlockId block : variant.blocks) {
        if (block == kNoBlock) continue;
        const Block& held = core_.pool_.Get(block);
        if (held.node != node || !held.Has(kVariantFlag) || held.owner != variant.owner) {
          Report(4, block, "tree", "a variant does not agree with its block");
        }
      }
    }
  }
}

// Blockers: children whose blocks cannot be given away.
void InvariantChecker::CheckBlockers() {
  const PrefixTree& tree = core_.tree_;
  std::vector<uint32_t> blockers(tree.end());
  for (NodeId node = 1; node < tree.end(); ++node) {
    if (!tree.Get(node).Has(kUsedNodeFlag) || tree.IsRoot(node)) continue;
    const auto count = [&](BlockId block) {
      if (block == kNoBlock) return;
      if (BlockPool::KindOf(core_.pool_.Get(block)) != BlockPool::ListKind::kNone) return;
      ++blockers[tree.Get(node).parent];
    };
    count(tree.BlockOf(node, core_.full_group_));
    for (const NodeVariant& variant : tree.Variants(node)) {
      count(variant.blocks[core_.full_group_]);
    }
  }
  for (NodeId node = 1; node < tree.end(); ++node) {
    if (!tree.Get(node).Has(kUsedNodeFlag) || tree.IsRoot(node)) continue;
    const BlockId block = tree.BlockOf(node, core_.full_group_);
    const bool blocked = block != kNoBlock && core_.pool_.Get(block).Has(kBlockedFlag);
    if (tree.Get(node).blockers != blockers[node] || blocked != (blockers[node] > 0)) {
      Report(5, block, "tree",
             absl::StrCat("counts ", tree.Get(node).blockers, " blocked children, has ",
                          blockers[node]));
    }
  }
}

// What counts as evictable for a worker must be reachable by taking leaves away one after another.
void InvariantChecker::CheckEvictable(WorkerSlot worker) {
  const PrefixTree& tree = core_.tree_;
  std::vector<NodeId> order;
  for (NodeId node = 1; node < tree.end(); ++node) {
    if (tree.Get(node).Has(kUsedNodeFlag) && !tree.IsRoot(node)) order.push_back(node);
  }
  std::sort(order.begin(), order.end(),
            [&](NodeId a, NodeId b) { return tree.Get(a).depth > tree.Get(b).depth; });
  std::vector<bool> stuck(tree.end());
  for (const NodeId node : order) {
    const BlockId block = tree.BlockOf(node, core_.full_group_);
    const bool available = block != kNoBlock && core_.pool_.AvailableTo(block, worker);
    if (available && stuck[node]) {
      Report(2, block, "tree", "counts as evictable, but what hangs below it cannot go");
    }
    if (!available || stuck[node]) stuck[tree.Get(node).parent] = true;
  }
}

// --- Blocks ---

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
  for (uint32_t index = 0; index < pool.size(); ++index) {
    const Block& block = pool.Get(BlockId{index});
    ++states[static_cast<size_t>(block.state)];
    if (block.state != BlockState::kFree) ++by_group[block.group][static_cast<size_t>(block.state)];
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

void InvariantChecker::CheckClaims() {
  uint64_t claimed = 0;
  uint64_t available = core_.pool_.OpenFree() + core_.pool_.OpenEvictable();
  for (const auto& worker : core_.workers_) {
    if (worker == nullptr) continue;
    claimed += worker->claimed;
    available += core_.pool_.OwnFree(worker->slot) + core_.pool_.OwnEvictable(worker->slot);
  }
  if (claimed != core_.claimed_ || claimed > available) {
    Report(3, std::nullopt, "claims",
           absl::StrCat("claims of ", claimed, " blocks (counted ", core_.claimed_, ") exceed the ",
                        available, " free and evictable ones"));
  }
  CheckOwed();
}

void InvariantChecker::CheckOwed() {
  uint64_t remaining = 0;
  uint64_t owed = 0;
  for (const auto& worker : core_.workers_) {
    if (worker == nullptr) continue;
    for (const auto& [handle, sequence] : worker->sequences) {
      const Claim* claim = sequence->claim.get();
      if (claim == nullptr || claim->members.front() != sequence.get()) continue;
      remaining += claim->remaining;
      owed += claim->wanted - claim->remaining;
    }
  }
  if (remaining == core_.claimed_ && owed == core_.owed_) return;
  Report(3, std::nullopt, "claims",
         absl::StrCat("claims promise ", remaining, " blocks and are owed ", owed, ", counted are ",
                      core_.claimed_, " and ", core_.owed_));
}

void InvariantChecker::CheckProtection() {
  const PrefixTree& tree = core_.tree_;
  for (NodeId node = 1; node < tree.end(); ++node) {
    if (!tree.Get(node).Has(kUsedNodeFlag) || tree.IsRoot(node)) continue;
    const auto found = core_.leaf_state_.find(node);
    const bool leaf = core_.IsLeaf(node);
    const bool held = core_.StaysAsLeaf(node);
    const int expected = int{leaf} + 2 * int{held};
    const int recorded = found == core_.leaf_state_.end() ? 0 : found->second;
    if (expected != recorded) {
      Report(
          5, std::nullopt, "tree",
          absl::StrCat("node ", node, " protects its window as ", recorded, ", not as ", expected));
    }
    if (core_.firm_nodes_.contains(node) != core_.Firm(node)) {
      Report(5, std::nullopt, "tree", absl::StrCat("node ", node, " is wrongly firm or not"));
    }
    CheckGuards(node);
  }
}

// A window block is guarded while a leaf that stays needs it.
void InvariantChecker::CheckGuards(NodeId node) {
  for (uint32_t group = 0; group < core_.groups(); ++group) {
    const BlockId block = core_.tree_.BlockOf(node, group);
    if (!core_.IsWindow(group) || block == kNoBlock) continue;
    const auto found = core_.protection_.find(uint64_t{node} << 16 | group);
    const bool guarded = found != core_.protection_.end() && found->second.staying > 0;
    if (core_.pool_.Get(block).Has(kGuardedFlag) == guarded) continue;
    Report(5, block, "tree", guarded ? "is not guarded" : "is guarded for nothing");
  }
}

}  // namespace quire
