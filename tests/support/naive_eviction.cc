// Which content may be given away, and in which order.
#include <algorithm>
#include <tuple>

#include "cache_service/engine/layer_groups.h"
#include "tests/support/naive_pool.h"

namespace quire::testing {

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

}  // namespace quire::testing
