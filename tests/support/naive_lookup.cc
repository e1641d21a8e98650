// Reuse of cached content in the naive model.
#include <algorithm>

#include "cache_service/engine/layer_groups.h"
#include "tests/support/naive_engine.h"

namespace quire::testing {

bool NaiveEngine::ResidentInAllGroups(const NaiveContent& content, int worker) const {
  for (uint32_t group = 0; group < options_.groups.size(); ++group) {
    if (pool_.Find(group, content.space, content.prefix, worker) == kNoBlock) return false;
  }
  return true;
}

NaiveEngine::Hit NaiveEngine::Lookup(const Items& items, uint32_t space, int worker) const {
  const uint32_t bs = options_.block_tokens;
  const size_t indexes = items.size() / bs + 1;
  Hit hit;
  hit.whole.resize(options_.groups.size(), std::vector<std::vector<BlockId>>(indexes));
  hit.partial.resize(indexes);
  for (const auto& [block, content] : pool_.content) {
    if (content.dead || content.space != space || (!content.is_public && content.worker != worker))
      continue;
    const auto common = static_cast<uint32_t>(
        std::mismatch(items.begin(), items.end(), content.prefix.begin(), content.prefix.end())
            .first -
        items.begin());
    const auto first = static_cast<uint32_t>(content.prefix.size() - bs);
    if (common == content.prefix.size()) hit.whole[content.group][first / bs].push_back(block);
    if (common <= first || !ResidentInAllGroups(content, worker)) continue;
    hit.partial[first / bs] = std::max(hit.partial[first / bs], common - first);
  }
  return hit;
}

bool NaiveEngine::Accepts(const Hit& hit, uint32_t length) const {
  const uint32_t bs = options_.block_tokens;
  for (uint32_t group = 0; group < options_.groups.size(); ++group) {
    const uint32_t first = FirstNeededBlock(options_.groups[group].window_tokens, length, bs);
    for (uint32_t i = first; i < length / bs; ++i) {
      if (hit.whole[group][i].empty()) return false;
    }
  }
  return length % bs == 0 || hit.partial[length / bs] >= length % bs;
}

uint32_t NaiveEngine::LongestHit(const Hit& hit, uint32_t limit) const {
  uint32_t length = limit;
  while (!Accepts(hit, length)) --length;
  return length;
}

uint32_t NaiveEngine::LongestWholeHit(const Hit& hit, uint32_t limit) const {
  uint32_t length = limit / options_.block_tokens * options_.block_tokens;
  while (!Accepts(hit, length)) length -= options_.block_tokens;
  return length;
}

// What the slack keeps counts while it is there without a gap.
uint32_t NaiveEngine::FirstHeld(const Hit& hit, uint32_t group, uint32_t reused) const {
  const uint32_t window = options_.groups[group].window_tokens;
  const uint32_t bs = options_.block_tokens;
  uint32_t first = std::min(FirstNeededBlock(window, reused, bs), reused / bs);
  const uint32_t kept = FirstNeededBlock(window, reused, bs, options_.window_slack_tokens);
  while (first > kept && !hit.whole[group][first - 1].empty()) --first;
  return first;
}

std::vector<BlockId> NaiveEngine::CopySources(const NaiveSequence& sequence, uint32_t group,
                                              uint32_t length) const {
  const uint32_t bs = options_.block_tokens;
  std::vector<BlockId> choices;
  for (const auto& [block, content] : pool_.content) {
    if (!content.dead && content.space == sequence.space && content.group == group &&
        (content.is_public || content.worker == actor_) &&
        content.prefix.size() == (length / bs + 1) * bs &&
        content.prefix.compare(0, length, sequence.items, 0, length) == 0 &&
        ResidentInAllGroups(content, actor_)) {
      choices.push_back(block);
    }
  }
  return choices;
}

BlockId NaiveEngine::ChooseSource(const std::vector<BlockId>& choices,
                                  const Cell& destination) const {
  const auto entries = hints_.find(destination);
  for (const CopyOrder& copy : copy_hints_) {
    const bool named = entries != hints_.end() && !entries->second.empty() &&
                       entries->second.front() == copy.destination;
    if (named && std::find(choices.begin(), choices.end(), copy.source) != choices.end()) {
      return copy.source;
    }
  }
  hidden_choice_ |= choices.size() > 1;
  // The dearest: what was cheap enough would have been named.
  const auto evictable = pool_.EvictableFor(actor_);
  const auto cost = [&](BlockId choice) {
    const NaiveContent& content = pool_.content.at(choice);
    size_t blocks = 0;
    for (uint32_t group = 0; group < options_.groups.size(); ++group) {
      const BlockId block = pool_.Find(group, content.space, content.prefix, actor_);
      blocks += std::find(evictable.begin(), evictable.end(), block) != evictable.end();
    }
    return blocks;
  };
  return *std::max_element(choices.begin(), choices.end(),
                           [&](BlockId a, BlockId b) { return cost(a) < cost(b); });
}

std::vector<BlockId> NaiveEngine::ChooseSources(const NaiveSequence& sequence,
                                                SequenceHandle handle, uint32_t reused) const {
  const BlockId first =
      ChooseSource(CopySources(sequence, 0, reused), {handle, 0, reused / options_.block_tokens});
  const Items& prefix = pool_.content.at(first).prefix;
  std::vector<BlockId> sources;
  for (uint32_t group = 0; group < options_.groups.size(); ++group) {
    sources.push_back(pool_.Find(group, sequence.space, prefix, actor_));
  }
  return sources;
}

NaiveEngine::Need NaiveEngine::NeedOf(const Hit& hit, const NaiveSequence& sequence,
                                      SequenceHandle handle, uint32_t reused,
                                      uint32_t length) const {
  const uint32_t bs = options_.block_tokens;
  Need need;
  for (uint32_t group = 0; group < options_.groups.size(); ++group) {
    need.blocks += BlocksFor(length) - reused / bs;
    for (uint32_t i = FirstHeld(hit, group, reused); i < reused / bs; ++i) {
      need.taken.insert(Preferred(hit.whole[group][i]));
    }
  }
  if (reused % bs > 0) {
    const auto sources = ChooseSources(sequence, handle, reused);
    need.taken.insert(sources.begin(), sources.end());
    need.open_choice = CopySources(sequence, 0, reused).size() > 1;
  }
  // Only what would be available otherwise counts.
  const auto evictable = pool_.EvictableFor(actor_);
  std::erase_if(need.taken, [&](BlockId block) {
    return std::find(evictable.begin(), evictable.end(), block) == evictable.end();
  });
  return need;
}

void NaiveEngine::StartSequence(uint32_t index, SequenceHandle handle, NaiveSequence sequence,
                                const Hit& hit, uint32_t reused, uint32_t length) {
  const uint32_t bs = options_.block_tokens;
  sequence.birth = ++pool_.births;
  sequence.committed = reused;
  sequence.reserved = length;
  sequence.entered.resize(reused, 0);
  sequence.entered.resize(length, step_);
  const NaiveSequence& live = pool_.sequences[{actor_, handle}] = sequence;
  std::vector<BlockId> sources;
  if (reused % bs > 0) sources = ChooseSources(sequence, handle, reused);
  // Held before anything is evicted for the new blocks.
  for (const BlockId source : sources) pool_.copies.push_back({source, actor_, step_});
  std::vector<Cell> cells;
  for (uint32_t group = 0; group < options_.groups.size(); ++group) {
    const uint32_t first = FirstHeld(hit, group, reused);
    for (uint32_t i = 0; i < reused / bs; ++i) {
      const Cell cell{handle, group, i};
      SetCell(cell, i < first ? kNoBlock : Preferred(hit.whole[group][i]));
    }
    for (uint32_t i = reused / bs; i < BlocksFor(length); ++i) cells.emplace_back(handle, group, i);
  }
  ApplyRetention(live, sequence.retention);
  Take(cells);
  for (uint32_t group = 0; group < sources.size(); ++group) {
    Copy(group, sources[group], live.tables[group][reused / bs], reused % bs);
  }
  result_.begins.push_back({index, reused, reused % bs, length});
}

}  // namespace quire::testing
