// Window groups in the naive model (E7): what leaves a table, and what comes back.
#include <algorithm>

#include "cache_service/engine/layer_groups.h"
#include "tests/support/naive_engine.h"

namespace quire::testing {

void NaiveEngine::LeaveWindows(SequenceHandle handle) {
  NaiveSequence& sequence = *FindSequence(handle);
  for (uint32_t group = 0; group < options_.groups.size(); ++group) {
    const uint32_t first =
        FirstNeededBlock(options_.groups[group].window_tokens, sequence.committed,
                         options_.block_tokens, options_.window_slack_tokens);
    for (uint32_t i = 0; i < std::min<size_t>(first, sequence.tables[group].size()); ++i) {
      const BlockId block = sequence.tables[group][i];
      if (block == kNoBlock) continue;
      SetCell({handle, group, i}, kNoBlock);
      pool_.LetGo(block, actor_, step_, clock_.Now());
    }
  }
}

// A sequence whose content was taken out has only what it holds.
BlockId NaiveEngine::StillThere(const NaiveSequence& sequence, uint32_t group,
                                uint32_t index) const {
  const BlockId block = sequence.tables[group][index];
  if (block != kNoBlock || !sequence.publishes) return block;
  return pool_.Find(group, sequence.space,
                    sequence.items.substr(0, (index + 1) * options_.block_tokens), actor_);
}

bool NaiveEngine::WindowIsThere(const NaiveSequence& sequence, uint32_t length) const {
  for (uint32_t group = 0; group < options_.groups.size(); ++group) {
    const uint32_t first =
        FirstNeededBlock(options_.groups[group].window_tokens, length, options_.block_tokens);
    for (uint32_t i = first; i < BlocksFor(length); ++i) {
      if (StillThere(sequence, group, i) == kNoBlock) return false;
    }
  }
  return true;
}

// What the window behind `length` needs comes back, and what the slack keeps while it is there
// without a gap.
void NaiveEngine::ReattachWindows(SequenceHandle handle, uint32_t length) {
  NaiveSequence& sequence = *FindSequence(handle);
  for (uint32_t group = 0; group < options_.groups.size(); ++group) {
    const uint32_t first = FirstNeededBlock(options_.groups[group].window_tokens, length,
                                            options_.block_tokens, options_.window_slack_tokens);
    for (uint32_t i = BlocksFor(length); i > first; --i) {
      const BlockId block = StillThere(sequence, group, i - 1);
      if (block == kNoBlock) break;
      if (sequence.tables[group][i - 1] == kNoBlock) SetCell({handle, group, i - 1}, block);
    }
  }
}

}  // namespace quire::testing
