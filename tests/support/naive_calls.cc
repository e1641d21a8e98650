// What happens between steps: completion, the end of a worker, and what an operator asks for.
#include "tests/support/naive_engine.h"

namespace quire::testing {

void NaiveEngine::Complete(int worker, StepNumber completed) {
  ApplyDue();
  actor_ = worker;
  in_step_ = false;
  ApplyCompletion(worker, completed, workers_.at(static_cast<size_t>(worker)).last_step + 1);
}

void NaiveEngine::EndWorker(int worker) {
  ApplyDue();
  actor_ = worker;
  step_ = workers_.at(static_cast<size_t>(worker)).last_step;
  std::map<uint64_t, SequenceHandle> by_birth;
  for (const auto& [key, sequence] : pool_.sequences) {
    if (key.first == worker) by_birth.emplace(sequence.birth, key.second);
  }
  for (const auto& [birth, handle] : by_birth) {
    CutTables(handle, 0);
    pool_.waiters.erase(birth);
    pool_.sequences.erase({worker, handle});
  }
  const auto mine = [&](const NaiveHold& hold) { return hold.worker == worker; };
  std::erase_if(pool_.releases, mine);
  std::erase_if(pool_.copies, mine);
  std::erase_if(pool_.content, [&](const auto& entry) {
    return !entry.second.is_public && entry.second.worker == worker;
  });
  unreported_.erase(worker);
  if (options_.memory != PoolMemoryKind::kWorker) return;
  pool_.pins.clear();
  Flush();
}

BlockStateCounts NaiveEngine::Counts() {
  ApplyDue();
  return pool_.Counts();
}

std::vector<SequenceView> NaiveEngine::Sequences(int worker) {
  std::vector<SequenceView> views;
  for (const auto& [key, sequence] : pool_.sequences) {
    if (key.first != worker) continue;
    SequenceView view;
    view.handle = key.second;
    view.committed = sequence.committed;
    view.length = sequence.length();
    view.reserved = sequence.reserved;
    for (const auto& table : sequence.tables) view.groups.push_back({table});
    view.namespace_parts = sequence.parts;
    views.push_back(view);
  }
  return views;
}

uint32_t NaiveEngine::Peek(const PrefixSelector& prefix) {
  ApplyDue();
  if (prefix.tokens.empty()) return 0;
  const Items items = ItemsOf(prefix.tokens, prefix.digests);
  const Hit hit =
      Lookup(items, SpaceOf(prefix.model_fingerprint, prefix.namespace_parts), kNoNaiveWorker);
  return LongestHit(hit, static_cast<uint32_t>(items.size()) - 1);
}

uint64_t NaiveEngine::EvictPrefix(const PrefixSelector& prefix) {
  ApplyDue();
  const Items items = ItemsOf(prefix.tokens, prefix.digests);
  const uint32_t space = SpaceOf(prefix.model_fingerprint, prefix.namespace_parts);
  std::vector<BlockId> blocks;
  for (const auto& [block, content] : pool_.content) {
    if (!content.dead && content.space == space && content.prefix.size() >= items.size() &&
        content.prefix.compare(0, items.size(), items) == 0) {
      blocks.push_back(block);
    }
  }
  for (const BlockId block : blocks) pool_.TakeOut(block);
  pool_.UnpinRemoved();
  return blocks.size();
}

uint64_t NaiveEngine::Flush() {
  ApplyDue();
  std::vector<BlockId> blocks;
  for (const auto& [block, content] : pool_.content) blocks.push_back(block);
  for (const BlockId block : blocks) pool_.TakeOut(block);
  pool_.UnpinRemoved();
  // Old content may also be in blocks that are not sealed yet.
  for (auto& [key, sequence] : pool_.sequences) sequence.publishes = false;
  return blocks.size();
}

uint32_t NaiveEngine::Pin(const PrefixSelector& prefix, const std::string& pin_id,
                          Duration duration) {
  ApplyDue();
  const uint32_t bs = options_.block_tokens;
  const Items items = ItemsOf(prefix.tokens, prefix.digests);
  const Hit hit =
      Lookup(items, SpaceOf(prefix.model_fingerprint, prefix.namespace_parts), kNoNaiveWorker);
  const uint32_t length = LongestWholeHit(hit, static_cast<uint32_t>(items.size()));
  if (length == 0) return 0;
  NaivePin pin{pin_id, {}, AddSaturating(clock_.Now(), duration)};
  for (uint32_t group = 0; group < options_.groups.size(); ++group) {
    for (uint32_t i = FirstHeld(hit, group, length); i < length / bs; ++i) {
      pin.blocks.push_back(hit.whole[group][i].front());
    }
  }
  pool_.pins.push_back(pin);
  return length;
}

bool NaiveEngine::Unpin(const std::string& pin_id) {
  ApplyDue();
  return std::erase_if(pool_.pins, [&](const NaivePin& pin) { return pin.id == pin_id; }) > 0;
}

}  // namespace quire::testing
