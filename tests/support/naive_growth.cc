// Looking up, taking, sealing and letting go of blocks in the naive model.
#include <algorithm>

#include "cache_service/engine/layer_groups.h"
#include "tests/support/naive_engine.h"

namespace quire::testing {
NaiveSequence* NaiveEngine::FindSequence(SequenceHandle handle) {
  const auto found = pool_.sequences.find({actor_, handle});
  return found == pool_.sequences.end() ? nullptr : &found->second;
}

uint32_t NaiveEngine::ComputedLength(const NaiveSequence& sequence) const {
  uint32_t length = 0;
  while (length < sequence.length() && sequence.entered[length] < step_) ++length;
  return length;
}

void NaiveEngine::CommitTo(SequenceHandle handle, uint32_t committed) {
  NaiveSequence& sequence = *FindSequence(handle);
  if (committed <= sequence.committed) return;
  sequence.committed = committed;
  for (uint32_t index = 0; index < committed / options_.block_tokens; ++index) {
    for (uint32_t group = 0; group < options_.groups.size(); ++group) Seal(handle, group, index);
  }
  LeaveWindows(handle);
}

void NaiveEngine::Seal(SequenceHandle handle, uint32_t group, uint32_t index) {
  NaiveSequence& sequence = *FindSequence(handle);
  const BlockId block = sequence.tables[group][index];
  if (block == kNoBlock || pool_.sealed.contains(block) || !sequence.publishes) return;
  NaiveContent mine{group, sequence.space,
                    sequence.items.substr(0, (index + 1) * options_.block_tokens), actor_, step_};
  std::vector<BlockId> equal;
  for (const auto& [other, theirs] : pool_.content) {
    if (theirs.SamePlace(mine) && !theirs.dead && (theirs.is_public || theirs.worker == actor_)) {
      equal.push_back(other);
    }
  }
  const auto wanted = RetentionOfBlock(sequence.retention, index, options_.block_tokens);
  if (equal.empty()) {
    pool_.sealed.insert(block);
    mine.sealer = sequence.birth;
    mine.seal_order = ++pool_.seals;
    const BlockRetention kept = wanted.value_or(BlockRetention{});
    mine.priority = kept.priority;
    mine.duration = kept.duration;
    pool_.content.emplace(block, mine);
    return;
  }
  const BlockId existing = Preferred(equal);
  if (wanted.has_value()) {
    pool_.content.at(existing).priority = wanted->priority;
    pool_.content.at(existing).duration = wanted->duration;
  }
  Remap(block, existing, step_);
}

// Of equal blocks the public one: the worker's own pending one will be remapped to it.
BlockId NaiveEngine::Preferred(const std::vector<BlockId>& equal) const {
  const auto found = std::find_if(equal.begin(), equal.end(),
                                  [&](BlockId block) { return pool_.content.at(block).is_public; });
  return found == equal.end() ? equal.front() : *found;
}

bool NaiveEngine::TailIsShared(const NaiveSequence& sequence, SequenceHandle handle,
                               uint32_t group) {
  const uint32_t index = sequence.length() / options_.block_tokens;
  if (sequence.length() % options_.block_tokens == 0) return false;
  const BlockId block = pool_.sequences.at({actor_, handle}).tables[group].at(index);
  return pool_.sealed.contains(block) || pool_.Holders()[Index(block)].tables > 1;
}

// Only what a sequence needs to go on makes it wait, not its look-ahead.
NaiveEngine::Outcome NaiveEngine::Grow(SequenceHandle handle, uint32_t length, uint32_t slots,
                                       bool waits) {
  NaiveSequence& sequence = *FindSequence(handle);
  const uint32_t old_length = sequence.length();
  const uint32_t reserved = std::max({sequence.reserved, length, slots});
  if (reserved == sequence.reserved && length == old_length) return {};
  const uint32_t bs = options_.block_tokens;
  std::vector<Cell> cells;
  std::vector<CopyOrder> copies;
  for (uint32_t group = 0; group < options_.groups.size(); ++group) {
    const auto& table = sequence.tables[group];
    if (TailIsShared(sequence, handle, group)) {
      if (ComputedLength(sequence) < old_length) return {MakeError(Reason::kNotComputed, "")};
      cells.emplace_back(handle, group, old_length / bs);
      copies.push_back({group, table[old_length / bs], kNoBlock, old_length % bs});
    }
    for (auto i = static_cast<uint32_t>(table.size()); i < BlocksFor(reserved); ++i) {
      cells.emplace_back(handle, group, i);
    }
  }
  const Need need{static_cast<uint32_t>(cells.size()), {}, false};
  if (Error error = Refusal(need, sequence.birth); !error.ok()) {
    if (waits) pool_.waiters[sequence.birth] = clock_.Now();
    return {error};
  }
  if (waits && !cells.empty()) pool_.waiters.erase(sequence.birth);
  // Held before a destination is chosen.
  for (const CopyOrder& copy : copies) pool_.copies.push_back({copy.source, actor_, step_});
  Take(cells);
  for (const CopyOrder& copy : copies) {
    Copy(copy.group, copy.source, sequence.tables[copy.group][old_length / bs], copy.tokens);
    pool_.LetGo(copy.source, actor_, step_, clock_.Now());
  }
  sequence.entered.resize(length, step_);
  sequence.reserved = reserved;
  return {};
}

std::optional<uint64_t> NaiveEngine::OldestWaiter() const {
  for (const auto& [birth, refused] : pool_.waiters) {
    if (clock_.Now() - refused <= 2 * options_.retry_interval) return birth;
  }
  return std::nullopt;
}

// Fenced blocks that the worker may not have.
uint32_t NaiveEngine::FencedFor(int worker) const {
  std::set<BlockId> fenced = pool_.Fenced();
  for (const BlockId block : pool_.FreeFor(worker)) fenced.erase(block);
  for (const BlockId block : pool_.EvictableFor(worker)) fenced.erase(block);
  return static_cast<uint32_t>(fenced.size());
}

Error NaiveEngine::Refusal(const Need& need, uint64_t birth) const {
  const size_t free = pool_.FreeFor(actor_).size();
  size_t evictable = 0;
  for (const BlockId block : pool_.EvictableFor(actor_)) {
    if (!need.taken.contains(block)) ++evictable;
  }
  const std::optional<uint64_t> waiter = OldestWaiter();
  const bool takes = need.blocks > 0 || !need.taken.empty();
  const bool must_wait = takes && waiter.has_value() && *waiter < birth;
  const bool short_of_blocks = takes && need.blocks > free + evictable;
  // A begin leaves this many while others run.
  const auto kept =
      static_cast<size_t>(options_.watermark * static_cast<double>(pool_.block_count));
  const bool too_low =
      birth == kNotBorn && !pool_.sequences.empty() && free + evictable < need.blocks + kept;
  if (!must_wait && !short_of_blocks && !too_low) return {};
  Error error = MakeError(Reason::kPoolExhausted, "",
                          {{"needed", need.blocks},
                           {"free", free},
                           {"held_by_caller", pool_.HeldBy(actor_)},
                           {"fenced", FencedFor(actor_)}});
  if (!need.open_choice) error.details.emplace_back("evictable", evictable);
  if (must_wait) {
    for (const auto& [key, sequence] : pool_.sequences) {
      if (sequence.birth == *waiter) error.details.emplace_back("waiting_sequence", key.second);
    }
  }
  return error;
}

void NaiveEngine::Take(const std::vector<Cell>& cells) {
  while (pool_.FreeFor(actor_).size() < cells.size()) {
    const BlockId victim = pool_.VictimFor(actor_);
    if (victim == kNoBlock) {
      Mismatch("the model itself found no victim");
      for (const Cell& cell : cells) SetCell(cell, kNoBlock);
      return;
    }
    pool_.Evict(victim);
  }
  for (const Cell& cell : cells) {
    const BlockId block = ChooseFree(cell);
    pool_.sealed.erase(block);
    SetCell(cell, block);
  }
}

// The one that the answer names, if it is free.
BlockId NaiveEngine::ChooseFree(const Cell& cell) const {
  const std::vector<BlockId> free = pool_.FreeFor(actor_);
  const auto entries = hints_.find(cell);
  const bool named = entries != hints_.end() && !entries->second.empty() &&
                     std::find(free.begin(), free.end(), entries->second.front()) != free.end();
  return named ? entries->second.front() : free.front();
}

void NaiveEngine::CutTables(SequenceHandle handle, size_t size) {
  NaiveSequence& sequence = *FindSequence(handle);
  for (size_t i = sequence.tables[0].size(); i > size; --i) {
    // At one position the groups that see everything go first.
    for (const bool window : {false, true}) {
      for (uint32_t group = 0; group < options_.groups.size(); ++group) {
        if (options_.groups[group].is_window() != window) continue;
        const BlockId block = sequence.tables[group].back();
        sequence.tables[group].pop_back();
        if (block != kNoBlock) pool_.LetGo(block, actor_, step_, clock_.Now());
      }
    }
  }
}

// A child without blocks.
void NaiveEngine::AddChild(SequenceHandle parent, SequenceHandle handle, uint32_t shared) {
  NaiveSequence child = *FindSequence(parent);
  child.birth = ++pool_.births;
  child.items.resize(shared);
  child.entered.resize(shared);
  child.committed = child.reserved = shared;
  child.tables.assign(options_.groups.size(), {});
  pool_.sequences[{actor_, handle}] = child;
}

// A private copy of the parent's partial last block for each child.
void NaiveEngine::CopyTails(SequenceHandle parent, std::span<const SequenceHandle> children,
                            uint32_t shared) {
  const uint32_t tail = shared / options_.block_tokens;
  for (const SequenceHandle child : children) {
    std::vector<Cell> cells;
    for (uint32_t group = 0; group < options_.groups.size(); ++group) {
      cells.emplace_back(child, group, tail);
    }
    Take(cells);
    for (const auto& [handle, group, index] : cells) {
      Copy(group, FindSequence(parent)->tables[group][index],
           FindSequence(handle)->tables[group][index], shared % options_.block_tokens);
    }
  }
}

// The child holds what the parent holds, but for a last block that was copied.
void NaiveEngine::ShareTables(SequenceHandle parent, SequenceHandle handle, bool has_tail) {
  const NaiveSequence& from = *FindSequence(parent);
  NaiveSequence& child = *FindSequence(handle);
  child.publishes = from.publishes;
  const uint32_t blocks = BlocksFor(child.length());
  for (uint32_t group = 0; group < options_.groups.size(); ++group) {
    child.tables[group].resize(blocks, kNoBlock);
    const uint32_t shared = has_tail ? blocks - 1 : blocks;
    std::copy_n(from.tables[group].begin(), shared, child.tables[group].begin());
    // An entry of the answer marks the place of the fork, even if nothing differs.
    if (!has_tail) SetCell({handle, group, blocks - 1}, from.tables[group][blocks - 1]);
  }
}

// Every block that the sequence still holds, also one that it was cut back into.
void NaiveEngine::ApplyRetention(const NaiveSequence& sequence,
                                 const std::vector<RetentionRange>& ranges) {
  for (const auto& table : sequence.tables) {
    for (uint32_t i = 0; i < table.size(); ++i) {
      const auto content = pool_.content.find(table[i]);
      const auto wanted = RetentionOfBlock(ranges, i, options_.block_tokens);
      if (content == pool_.content.end() || !wanted.has_value()) continue;
      content->second.priority = wanted->priority;
      content->second.duration = wanted->duration;
    }
  }
}

// From the tail: what the sequence sealed first at a place goes, while only the sequence held it
// and nothing continues it.
void NaiveEngine::DropSealed(const NaiveSequence& sequence) {
  for (uint32_t i = sequence.committed / options_.block_tokens; i > 0; --i) {
    const Items prefix = sequence.items.substr(0, i * options_.block_tokens);
    // Pending blocks of the worker stand for themselves beside public ones.
    std::vector<BlockId> pending;
    std::vector<BlockId> blocks;
    for (const auto& [block, content] : pool_.content) {
      if (content.dead || content.space != sequence.space || content.prefix != prefix) continue;
      if (content.is_public) blocks.push_back(block);
      if (!content.is_public && content.worker == actor_) pending.push_back(block);
    }
    if (!pending.empty()) blocks = pending;
    // Taken out before.
    if (blocks.empty()) continue;
    // Blocks of the groups that see everything tell who was first.
    const auto is_window = [&](BlockId block) {
      return options_.groups[pool_.content.at(block).group].is_window();
    };
    if (std::all_of(blocks.begin(), blocks.end(), is_window)) return;
    const auto holders = pool_.Holders();
    const bool may_go = std::all_of(blocks.begin(), blocks.end(), [&](BlockId block) {
      const NaiveContent& content = pool_.content.at(block);
      return (is_window(block) || content.sealer == sequence.birth) && pool_.IsLeaf(content) &&
             holders[Index(block)].AvailableTo(actor_);
    });
    if (!may_go) return;
    for (const BlockId block : blocks) pool_.content.erase(block);
  }
}

}  // namespace quire::testing
