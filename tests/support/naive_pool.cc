#include "tests/support/naive_pool.h"

#include <algorithm>
#include <sstream>

namespace quire::testing {

std::vector<NaiveHolders> NaivePool::Holders() const {
  std::vector<NaiveHolders> holders(block_count);
  for (const auto& [key, sequence] : sequences) {
    for (const auto& table : sequence.tables) {
      for (const BlockId block : table) {
        if (block != kNoBlock) ++holders[Index(block)].tables;
      }
    }
  }
  for (const NaivePin& pin : pins) {
    for (const BlockId block : pin.blocks) ++holders[Index(block)].pins;
  }
  for (const NaiveHold& copy : copies) ++holders[Index(copy.block)].copies;
  for (const NaiveHold& release : releases) {
    holders[Index(release.block)].releasing.insert(release.worker);
  }
  return holders;
}

std::vector<BlockId> NaivePool::FreeFor(int worker) const {
  const std::vector<NaiveHolders> holders = Holders();
  std::vector<BlockId> blocks;
  for (uint32_t i = 0; i < block_count; ++i) {
    if (holders[i].AvailableTo(worker) && !content.contains(BlockId{i})) {
      blocks.push_back(BlockId{i});
    }
  }
  return blocks;
}

std::set<BlockId> NaivePool::Fenced() const {
  const std::vector<NaiveHolders> holders = Holders();
  std::set<BlockId> fenced;
  for (uint32_t i = 0; i < block_count; ++i) {
    const bool is_sealed = content.contains(BlockId{i}) || sealed.contains(BlockId{i});
    const bool used = holders[i].tables > 0 || (is_sealed && holders[i].Held());
    if (!used && (holders[i].Held() || !holders[i].releasing.empty())) fenced.insert(BlockId{i});
  }
  return fenced;
}

BlockStateCounts NaivePool::Counts() const {
  const std::vector<NaiveHolders> holders = Holders();
  const std::set<BlockId> fenced = Fenced();
  BlockStateCounts counts;
  counts.fenced = fenced.size();
  for (uint32_t i = 0; i < block_count; ++i) {
    const auto mine = content.find(BlockId{i});
    const bool in_tree = mine != content.end();
    counts.dead += in_tree && mine->second.dead;
    if (fenced.contains(BlockId{i})) continue;
    if (!holders[i].Held()) {
      ++(in_tree ? counts.idle : counts.free);
    } else if (in_tree) {
      ++(mine->second.is_public ? counts.referenced : counts.pending);
    } else {
      ++(sealed.contains(BlockId{i}) ? counts.referenced : counts.filling);
    }
  }
  return counts;
}

uint64_t NaivePool::HeldBy(int worker) const {
  std::set<BlockId> blocks;
  for (const auto& [key, sequence] : sequences) {
    if (key.first != worker) continue;
    for (const auto& table : sequence.tables) blocks.insert(table.begin(), table.end());
  }
  blocks.erase(kNoBlock);
  return blocks.size();
}

BlockId NaivePool::Find(uint32_t group, uint32_t space, const Items& prefix, int worker) const {
  BlockId found = kNoBlock;
  for (const auto& [block, mine] : content) {
    if (mine.group != group || mine.space != space || mine.prefix != prefix || mine.dead) continue;
    if (mine.is_public) return block;
    if (mine.worker == worker) found = block;
  }
  return found;
}

void NaivePool::LetGo(BlockId block, int worker, StepNumber step, TimePoint now) {
  releases.push_back({block, worker, step});
  const auto mine = content.find(block);
  if (mine == content.end() || Holders()[Index(block)].tables > 0) return;
  mine->second.last_use = ++uses;
  mine->second.let_go = now;
}

void NaivePool::TakeOut(BlockId block) {
  content.erase(block);
  for (auto& [key, sequence] : sequences) {
    for (const auto& table : sequence.tables) {
      if (std::find(table.begin(), table.end(), block) != table.end()) sequence.publishes = false;
    }
  }
}

void NaivePool::UnpinRemoved() {
  for (NaivePin& pin : pins) {
    std::erase_if(pin.blocks, [this](BlockId block) { return !content.contains(block); });
  }
  std::erase_if(pins, [](const NaivePin& pin) { return pin.blocks.empty(); });
}

void NaivePool::ExpireRetention(TimePoint now) {
  const std::vector<NaiveHolders> holders = Holders();
  for (auto& [block, mine] : content) {
    if (!mine.duration.has_value() || holders[Index(block)].tables > 0) continue;
    if (AddSaturating(mine.let_go, *mine.duration) > now) continue;
    mine.priority = kDefaultPriority;
    mine.duration.reset();
  }
}

std::string NaivePool::Describe() const {
  std::ostringstream text;
  for (const auto& [key, sequence] : sequences) {
    text << "worker " << key.first << " sequence " << key.second << " born " << sequence.birth
         << " committed " << sequence.committed << " length " << sequence.length() << " reserved "
         << sequence.reserved << (sequence.publishes ? "" : " private");
    for (const auto& table : sequence.tables) {
      text << " [";
      for (const BlockId block : table) text << static_cast<int32_t>(Index(block)) << " ";
      text << "]";
    }
    text << "\n";
  }
  const std::vector<NaiveHolders> holders = Holders();
  for (const auto& [block, mine] : content) {
    text << "block " << Index(block) << " group " << mine.group << " space " << mine.space << " (";
    for (const char32_t item : mine.prefix) text << static_cast<uint32_t>(item) << " ";
    text << ") " << (mine.is_public ? "public" : "pending of ");
    if (!mine.is_public) text << mine.worker << " step " << mine.step;
    text << " priority " << mine.priority << " last use " << mine.last_use
         << (mine.dead ? " dead" : "") << " tables " << holders[Index(block)].tables << " pins "
         << holders[Index(block)].pins << " copies " << holders[Index(block)].copies
         << " released by {";
    for (const int worker : holders[Index(block)].releasing) text << worker << " ";
    text << "}\n";
  }
  text << "sealed once:";
  for (const BlockId block : sealed) text << " " << Index(block);
  text << "\n";
  return text.str();
}

}  // namespace quire::testing
