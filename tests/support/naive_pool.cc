#include "tests/support/naive_pool.h"

#include <algorithm>
#include <sstream>
#include <tuple>

#include "cache_service/engine/layer_groups.h"

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

bool NaivePool::IsTwin(BlockId block) const {
  const NaiveContent& mine = content.at(block);
  if (mine.dead) return false;
  // When the worker sealed its first block of the place.
  const auto first_seal = [&](int worker) {
    uint64_t first = ~uint64_t{0};
    for (const auto& [other, theirs] : content) {
      if (!theirs.is_public && theirs.worker == worker && theirs.SamePrefix(mine) && !theirs.dead) {
        first = std::min(first, theirs.seal_order);
      }
    }
    return first;
  };
  return std::any_of(content.begin(), content.end(), [&](const auto& entry) {
    const NaiveContent& other = entry.second;
    if (other.dead || !mine.SamePrefix(other)) return false;
    if (!mine.is_public && (other.is_public || first_seal(other.worker) < first_seal(mine.worker)))
      return true;
    const bool stands_beside = !other.is_public && (mine.is_public || other.worker != mine.worker);
    return stands_beside && !groups[mine.group].is_window() && HasChild(mine);
  });
}

bool NaivePool::InWindowOf(const NaiveContent& mine, const NaiveContent& leaf) const {
  if (!mine.SamePrefix(leaf) && !mine.Before(leaf)) return false;
  const auto end = static_cast<uint32_t>(leaf.prefix.size());
  const uint32_t first = FirstNeededBlock(groups[mine.group].window_tokens, end, block_tokens);
  return mine.prefix.size() / block_tokens > first;
}

bool NaivePool::IsLeaf(const NaiveContent& leaf) const {
  return std::none_of(content.begin(), content.end(), [&](const auto& entry) {
    return !entry.second.dead && leaf.Before(entry.second);
  });
}

bool NaivePool::StaysAsLeaf(const NaiveContent& leaf) const {
  const std::vector<NaiveHolders> holders = Holders();
  // Somebody cannot evict it now.
  const auto closed = [&](const auto& entry) {
    const NaiveHolders& held = holders[Index(entry.first)];
    return !entry.second.dead &&
           (!entry.second.is_public || held.Held() || !held.releasing.empty());
  };
  // Not even the worker whose release fences it can.
  const auto firm = [&](const auto& entry) {
    const NaiveHolders& held = holders[Index(entry.first)];
    return held.Held() || held.releasing.size() > 1 ||
           (!entry.second.is_public && !held.AvailableTo(entry.second.worker));
  };
  bool stays = false;
  for (const auto& entry : content) {
    if (!closed(entry) || groups[entry.second.group].is_window()) continue;
    if (leaf.Before(entry.second) && firm(entry)) return false;
    stays = stays || leaf.SamePrefix(entry.second);
  }
  return stays;
}

std::vector<BlockId> NaivePool::EvictableFor(int worker) const {
  const std::vector<NaiveHolders> holders = Holders();
  std::set<BlockId> blocks;
  for (const auto& [block, mine] : content) {
    const bool visible = mine.is_public || mine.worker == worker;
    if (visible && holders[Index(block)].AvailableTo(worker) && !IsTwin(block)) {
      blocks.insert(block);
    }
  }
  // What stands above something that has to stay must stay too, in a window group what is in the
  // window of such a thing.
  const bool has_windows = std::any_of(groups.begin(), groups.end(),
                                       [](const GroupSpec& group) { return group.is_window(); });
  std::vector<const NaiveContent*> staying;
  for (const auto& [block, other] : content) {
    if (has_windows && !other.dead && StaysAsLeaf(other)) staying.push_back(&other);
  }
  std::erase_if(blocks, [&](BlockId block) {
    const NaiveContent& mine = content.at(block);
    if (mine.dead) return false;
    if (groups[mine.group].is_window()) {
      return std::any_of(staying.begin(), staying.end(),
                         [&](const NaiveContent* leaf) { return InWindowOf(mine, *leaf); });
    }
    return std::any_of(content.begin(), content.end(), [&](const auto& entry) {
      return mine.Above(entry.second) && !entry.second.dead && !blocks.contains(entry.first);
    });
  });
  return {blocks.begin(), blocks.end()};
}

bool NaivePool::HasChild(const NaiveContent& parent) const {
  return std::any_of(content.begin(), content.end(), [&](const auto& entry) {
    return parent.Above(entry.second) && !entry.second.dead;
  });
}

BlockId NaivePool::VictimFor(int worker) const {
  const auto must_wait = [&](const NaiveContent& mine) {
    if (mine.dead) return false;
    if (!groups[mine.group].is_window()) return HasChild(mine);
    return std::any_of(content.begin(), content.end(), [&](const auto& entry) {
      return !entry.second.dead && IsLeaf(entry.second) && InWindowOf(mine, entry.second);
    });
  };
  std::vector<BlockId> victims;
  for (const BlockId block : EvictableFor(worker)) {
    if (!must_wait(content.at(block))) victims.push_back(block);
  }
  const auto order = [&](BlockId block) {
    const NaiveContent& mine = content.at(block);
    return std::tuple(!mine.dead, mine.dead ? 0 : mine.priority, mine.last_use);
  };
  std::sort(victims.begin(), victims.end(),
            [&](BlockId a, BlockId b) { return order(a) < order(b); });
  return victims.empty() ? kNoBlock : victims.front();
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

void NaivePool::Evict(BlockId block) {
  const NaiveContent gone = content.at(block);
  content.erase(block);
  if (gone.dead || groups[gone.group].is_window()) return;
  const std::vector<NaiveHolders> holders = Holders();
  // A hit needs the place in every group that sees everything, from blocks that the same worker
  // sees.
  const auto is_usable = [&](const NaiveContent& mine) {
    for (uint32_t group = 0; group < groups.size(); ++group) {
      if (groups[group].is_window()) continue;
      const bool there = std::any_of(content.begin(), content.end(), [&](const auto& entry) {
        const NaiveContent& other = entry.second;
        const bool seen = other.is_public || (!mine.is_public && other.worker == mine.worker);
        return other.group == group && !other.dead && seen && other.SamePrefix(mine);
      });
      if (!there) return false;
    }
    return true;
  };
  std::vector<BlockId> lost;
  for (const auto& [other, theirs] : content) {
    if (!theirs.dead && theirs.SamePrefix(gone) && !is_usable(theirs)) lost.push_back(other);
  }
  for (const BlockId other : lost) {
    if (holders[Index(other)].Held()) {
      content.erase(other);
    } else {
      content.at(other).dead = true;
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
