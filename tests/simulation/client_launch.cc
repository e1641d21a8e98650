// What a client lets its device do, ahead of the answers.
#include <algorithm>
#include <utility>

#include "tests/simulation/client.h"

namespace quire::simulation {
namespace {

constexpr size_t kMostQueued = 64;

}  // namespace

// What the device has finished: sampled values become known, steps complete.
void Client::NoteDevice() {
  for (const SequenceHandle handle : device_.TakeFinished()) {
    Sequence* sequence = Find(handle);
    if (sequence == nullptr || sequence->unknown.empty()) continue;
    const UnknownLaunch launch = sequence->unknown.front();
    sequence->unknown.pop_front();
    if (launch.stale) continue;
    sequence->known += launch.adds;
    sequence->bound -= launch.drafts + 1 - launch.adds;
  }
  completed_ = std::max(completed_, device_.marked());
}

void Client::LaunchAll() {
  // Nobody may rely on a lease that may have ended.
  if (now() + shared_.plan.lease_margin > renewed_at_ + shared_.plan.lease) return;
  LaunchEach();
}

void Client::FinishRound() {
  if (state_ == State::kAttached) LaunchEach();
}

void Client::LaunchEach() {
  for (const SequencePtr& sequence : sequences_) {
    if (!sequence->begun || sequence->adrift || random_.OneIn(5)) continue;
    if (device_.queued() < kMostQueued) Launch(*sequence);
  }
}

void Client::Launch(Sequence& sequence) {
  if (sequence.truncates_unanswered > 0) {
    if (random_.OneIn(3)) LaunchStale(sequence);
    return;
  }
  if (sequence.unknown.size() > plan_.lag) return;
  const uint32_t size = sequence.text->size();
  const uint32_t reserved = sequence.answered.reserved;
  const bool all_known = sequence.unknown.empty();
  const bool in_parts = all_known && size - sequence.launched > 2 && random_.OneIn(3);
  if (!in_parts && sequence.bound + plan_.drafts <= reserved) {
    LaunchDecode(sequence, plan_.drafts);
  } else if (!in_parts && all_known && size <= reserved) {
    LaunchDecode(sequence, std::min(reserved - size, plan_.drafts));
  } else if (const uint32_t most = std::min(size - 1, reserved);
             all_known && sequence.launched < most) {
    LaunchPrompt(sequence, random_.Between(sequence.launched + 1, most));
  }
}

// Tokens up to `end`, the last one not among them: nothing is sampled.
void Client::LaunchPrompt(Sequence& sequence, uint32_t end) {
  Queue(sequence, {.first = sequence.launched, .end = end, .drafts_end = end, .counts = false});
  sequence.launched = end;
}

// All tokens up to the last one and drafts beyond it; samples a token for each accepted draft and
// one more.
void Client::LaunchDecode(Sequence& sequence, uint32_t drafts) {
  Text& text = *sequence.text;
  const uint32_t size = text.size();
  const uint32_t accepted = random_.Below(drafts + 1);
  for (uint32_t i = 0; i < accepted; ++i) text.Append(shared_.prompts.Sample(text.last()));
  Queue(sequence,
        {.first = sequence.launched, .end = size + accepted, .drafts_end = size + drafts});
  text.Append(shared_.prompts.Sample(text.last()));
  sequence.launched = size + accepted;
  sequence.bound += drafts + 1;
  sequence.unknown.push_back({accepted + 1, drafts});
}

// A truncate is under way: whatever is launched now uses the old tables and counts for nothing, but
// still must find what it reads.
void Client::LaunchStale(Sequence& sequence) {
  const uint32_t launched = sequence.old_launched;
  const uint32_t reserved = sequence.answered.reserved;
  if (sequence.old_text == nullptr || launched == 0 || launched >= reserved) return;
  Kernel kernel{.first = launched, .end = launched, .drafts_end = launched + 1, .counts = false};
  kernel.text = sequence.old_text;
  Queue(sequence, std::move(kernel));
}

void Client::Queue(Sequence& sequence, Kernel kernel) {
  kernel.sequence = sequence.handle;
  if (kernel.text == nullptr) kernel.text = sequence.text;
  if (plan_.map_memory) {
    kernel.tables = sequence.tables;
    if (!TablesCover(sequence, kernel)) return;
  }
  device_.Launch(std::move(kernel));
}

bool Client::TablesCover(const Sequence& sequence, const Kernel& kernel) const {
  const EngineOptions& engine = shared_.plan.engine;
  for (uint32_t group = 0; group < engine.groups.size(); ++group) {
    const uint32_t window = engine.groups[group].window_tokens;
    const uint32_t behind = kernel.first + 1;
    const uint32_t first = window > 0 && behind > window ? behind - window : 0;
    const std::vector<BlockId>& table = (*sequence.tables)[group];
    for (uint32_t i = first / engine.block_tokens;
         i <= (kernel.drafts_end - 1) / engine.block_tokens; ++i) {
      if (i < table.size() && table[i] != kNoBlock) continue;
      shared_.judge.Violate(plan_.name, " (process ", process_, "): sequence ", sequence.handle,
                            " of ", sequence.answered.committed, "/", sequence.answered.length, "/",
                            sequence.answered.reserved, " tokens lacks block ", i, " of group ",
                            group, " for positions ", first, " to ", kernel.drafts_end - 1);
      return false;
    }
  }
  return true;
}

}  // namespace quire::simulation
