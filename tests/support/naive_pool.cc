#include "tests/support/naive_pool.h"

#include <algorithm>
#include <tuple>

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

bool NaivePool::IsVariant(BlockId block) const {
  const NaiveContent& mine = content.at(block);
  if (mine.is_public) return false;
  return std::any_of(content.begin(), content.end(), [&](const auto& entry) {
    const NaiveContent& other = entry.second;
    return entry.first != block && mine.SamePlace(other) &&
           (other.is_public || other.seal_order < mine.seal_order);
  });
}

std::vector<BlockId> NaivePool::EvictableFor(int worker) const {
  const std::vector<NaiveHolders> holders = Holders();
  std::set<BlockId> blocks;
  for (const auto& [block, mine] : content) {
    const bool visible = mine.is_public || mine.worker == worker;
    if (visible && holders[Index(block)].AvailableTo(worker) && !IsVariant(block)) {
      blocks.insert(block);
    }
  }
  // What stands above something that has to stay must stay too.
  std::erase_if(blocks, [&](BlockId block) {
    return std::any_of(content.begin(), content.end(), [&](const auto& entry) {
      return content.at(block).Above(entry.second) && !blocks.contains(entry.first);
    });
  });
  return {blocks.begin(), blocks.end()};
}

bool NaivePool::HasChild(const NaiveContent& parent) const {
  return std::any_of(content.begin(), content.end(),
                     [&](const auto& entry) { return parent.Above(entry.second); });
}

BlockId NaivePool::VictimFor(int worker) const {
  std::vector<BlockId> leaves;
  for (const BlockId block : EvictableFor(worker)) {
    if (!HasChild(content.at(block))) leaves.push_back(block);
  }
  const auto order = [&](BlockId block) {
    const NaiveContent& mine = content.at(block);
    return std::tuple(mine.priority, mine.last_use);
  };
  std::sort(leaves.begin(), leaves.end(),
            [&](BlockId a, BlockId b) { return order(a) < order(b); });
  return leaves.empty() ? kNoBlock : leaves.front();
}

BlockStateCounts NaivePool::Counts() const {
  const std::vector<NaiveHolders> holders = Holders();
  BlockStateCounts counts;
  for (uint32_t i = 0; i < block_count; ++i) {
    const auto mine = content.find(BlockId{i});
    const bool in_tree = mine != content.end();
    const bool is_sealed = in_tree || sealed.contains(BlockId{i});
    const bool used =
        holders[i].tables > 0 || (is_sealed && holders[i].pins + holders[i].copies > 0);
    if (used && !is_sealed) {
      ++counts.filling;
    } else if (used) {
      ++(in_tree && !mine->second.is_public ? counts.pending : counts.referenced);
    } else if (!holders[i].releasing.empty() || holders[i].Held()) {
      ++counts.fenced;
    } else {
      ++(in_tree ? counts.idle : counts.free);
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
  for (const auto& [block, mine] : content) {
    if (mine.group == group && mine.space == space && mine.prefix == prefix &&
        (mine.is_public || mine.worker == worker)) {
      return block;
    }
  }
  return kNoBlock;
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

void NaivePool::ExpireRetention(TimePoint now) {
  const std::vector<NaiveHolders> holders = Holders();
  for (auto& [block, mine] : content) {
    if (!mine.duration.has_value() || holders[Index(block)].tables > 0) continue;
    if (AddSaturating(mine.let_go, *mine.duration) > now) continue;
    mine.priority = kDefaultPriority;
    mine.duration.reset();
  }
}

}  // namespace quire::testing
