// Block tables as the answers tell them.
#include <algorithm>
#include <utility>

#include "tests/simulation/client.h"

namespace quire::simulation {

uint32_t Client::BlocksFor(uint32_t slots) const {
  const uint32_t block_tokens = shared_.plan.engine.block_tokens;
  return (slots + block_tokens - 1) / block_tokens;
}

// Kernels keep the tables of their launch.
Tables& Client::Writable(Sequence& sequence) {
  if (sequence.tables.use_count() > 1) sequence.tables = std::make_shared<Tables>(*sequence.tables);
  return *sequence.tables;
}

void Client::ApplyRun(const TableRun& run, const StepResult& answer) {
  StartChildTables(run.sequence);
  Sequence* sequence = Find(run.sequence);
  if (sequence == nullptr || sequence->tables == nullptr) {
    // Changes that were told late may name a sequence that the same step ended.
    return;
  }
  std::vector<BlockId>& table = Writable(*sequence).at(run.group);
  const size_t end = size_t{run.first_index} + run.count;
  if (table.size() < end) table.resize(end, kNoBlock);
  std::copy_n(answer.blocks.begin() + run.first_block, run.count, table.begin() + run.first_index);
}

// A child starts with its parent's entries; its first run marks the moment.
void Client::StartChildTables(SequenceHandle child) {
  const auto found =
      std::find_if(new_children_.begin(), new_children_.end(),
                   [&](const NewChild& candidate) { return candidate.child->handle == child; });
  if (found == new_children_.end()) return;
  const NewChild fork = *found;
  new_children_.erase(found);
  // A child of a child of the same step.
  StartChildTables(fork.parent->handle);
  *fork.child->tables = *fork.parent->tables;
  for (std::vector<BlockId>& table : *fork.child->tables) {
    table.resize(std::min<size_t>(table.size(), fork.blocks));
  }
}

void Client::SettleTables() {
  for (const SequencePtr& sequence : sequences_) {
    if (!sequence->begun || sequence->ended) continue;
    const uint32_t needed =
        BlocksFor(std::max(sequence->answered.length, sequence->answered.reserved));
    for (uint32_t group = 0; group < sequence->tables->size(); ++group) {
      const size_t size = (*sequence->tables)[group].size();
      if (size > needed) Writable(*sequence)[group].resize(needed);
      if (size >= needed) continue;
      Violate("the table of sequence ", sequence->handle, " has ", size, " entries, its ",
              sequence->answered.reserved, " slots need ", needed);
    }
  }
}

void Client::CompareTables(const std::vector<SequenceView>& views) {
  size_t live = 0;
  for (const SequencePtr& sequence : sequences_) live += sequence->begun && !sequence->ended;
  if (live != views.size()) {
    Violate("has ", live, " sequences, the server ", views.size());
    return;
  }
  for (const SequenceView& view : views) {
    const Sequence* sequence = Find(view.handle);
    if (sequence == nullptr || !sequence->begun) {
      Violate("does not have sequence ", view.handle, " of the server");
      return;
    }
    const Lengths& own = sequence->answered;
    if (own.committed != view.committed || own.length != view.length ||
        own.reserved != view.reserved) {
      Violate("sequence ", view.handle, " has ", own.committed, "/", own.length, "/", own.reserved,
              " tokens, at the server ", view.committed, "/", view.length, "/", view.reserved);
    }
    for (size_t group = 0; group < view.groups.size(); ++group) {
      if (view.groups[group].blocks == (*sequence->tables)[group]) continue;
      Violate("the table of sequence ", view.handle, " in group ", group, " is not the server's");
    }
  }
}

}  // namespace quire::simulation
