// Workers, their sequences and their tables.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cache_service/engine/invariants.h"

namespace quire {
namespace {

std::string OwnerOf(const WorkerState& worker, const Sequence& sequence) {
  return absl::StrCat(worker.name, "/", sequence.handle);
}

}  // namespace

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

}  // namespace quire
