#include "tests/simulation/prompts.h"

#include <algorithm>

namespace quire::simulation {
namespace {

constexpr size_t kRemembered = 8;

}  // namespace

TokenId Prompts::Sample(ContentId before) {
  return random_.OneIn(10) ? random_.Below(6) : static_cast<TokenId>(Mix(before) % 5);
}

Prompt Prompts::Draw() {
  const uint32_t longest = plan_.engine.max_sequence_tokens;
  Prompt prompt;
  if (!earlier_.empty() && random_.OneIn(3)) {
    prompt = earlier_[random_.Below(static_cast<uint32_t>(earlier_.size()))];
    const uint32_t kept = random_.Between(1, prompt.text.size());
    if (random_.OneIn(2)) prompt.text = prompt.text.Prefix(kept);
  } else {
    prompt.name_space = random_.Below(plan_.name_spaces);
    prompt.text.root = RootContent(prompt.name_space);
    AddHead(prompt, random_.Between(1, longest / 2));
    if (random_.OneIn(12)) AddImage(prompt);
  }
  for (uint32_t i = random_.Below(6); i > 0; --i) prompt.text.Append(random_.Below(3));
  if (prompt.text.size() >= longest) prompt.text = prompt.text.Prefix(longest - 1);
  return prompt;
}

void Prompts::AddHead(Prompt& prompt, uint32_t length) {
  const uint32_t family = random_.Below(plan_.families);
  for (uint32_t i = 0; i < length; ++i) {
    prompt.text.Append(static_cast<TokenId>(Mix(family * 1000 + i) % 7));
  }
}

void Prompts::AddImage(Prompt& prompt) {
  DigestRange range;
  range.start = prompt.text.size();
  range.end = range.start + random_.Between(1, 6);
  range.digest[0] = static_cast<uint8_t>(random_.Between(1, 2));
  for (uint32_t i = range.start; i < range.end; ++i) {
    prompt.text.Append(9, range.digest[0] * 1000u + i - range.start + 1);
  }
  prompt.digests.push_back(range);
}

void Prompts::Remember(const Text& text, uint32_t name_space) {
  earlier_.push_back({text, name_space, {}});
  if (earlier_.size() > kRemembered) earlier_.pop_front();
}

}  // namespace quire::simulation
