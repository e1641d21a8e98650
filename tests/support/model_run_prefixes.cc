// What operators and others may do to prefixes while workers step.
#include <string>

#include "tests/support/model_run.h"

namespace quire::testing {

PrefixSelector ModelRun::Select(const Prompt& prompt) const {
  return {kFingerprint, prompt.parts, prompt.tokens, prompt.digests};
}

std::string ModelRun::ActPin(Choices& choices) {
  const Prompt prompt = maker_->MakePrompt(choices);
  const Duration duration = std::chrono::milliseconds(choices.Between(1, 30));
  const auto pinned = engine_->PinPrefix(Select(prompt), "owner", duration);
  Log("pin " + Describe(prompt));
  const std::string id = pinned.ok() ? pinned->pin_id : "";
  const uint32_t expected = model_->Pin(Select(prompt), id, duration);
  if (pinned.ok()) pins_.push_back(id);
  const uint32_t got = pinned.ok() ? pinned->pinned_tokens : 0;
  if (got == expected) return "";
  return "pinned " + std::to_string(got) + " tokens, expected " + std::to_string(expected);
}

std::string ModelRun::ActUnpin(Choices& choices) {
  if (pins_.empty()) return "";
  const auto pin = pins_.begin() + choices.Next(static_cast<uint32_t>(pins_.size()));
  Log("unpin " + *pin);
  const bool expected = model_->Unpin(*pin);
  const bool got = engine_->UnpinPrefix(*pin).ok();
  pins_.erase(pin);
  return got == expected ? "" : "another result of unpin";
}

std::string ModelRun::ActEvict(Choices& choices) {
  if (choices.OneIn(6)) {
    Log("flush");
    const uint64_t expected = model_->Flush();
    const uint64_t got = engine_->Flush();
    return got == expected ? ""
                           : "flush took " + std::to_string(got) + " blocks, expected " +
                                 std::to_string(expected);
  }
  const Prompt prompt = maker_->MakePrompt(choices);
  if (prompt.tokens.empty()) return "";
  Log("evict " + Describe(prompt));
  const uint64_t expected = model_->EvictPrefix(Select(prompt));
  const auto got = engine_->EvictPrefix(Select(prompt));
  if (!got.ok()) return "evict refused: " + std::string(got.status().message());
  if (*got == expected) return "";
  return "evict took " + std::to_string(*got) + " blocks, expected " + std::to_string(expected);
}

std::string ModelRun::ActPeek(Choices& choices) {
  const Prompt prompt = maker_->MakePrompt(choices);
  if (prompt.tokens.empty()) return "";
  Log("peek " + Describe(prompt));
  const uint32_t expected = model_->Peek(Select(prompt));
  const auto got = engine_->PeekPrefix(Select(prompt));
  if (!got.ok()) return "peek refused: " + std::string(got.status().message());
  if (*got == expected) return "";
  return "peek found " + std::to_string(*got) + " tokens, expected " + std::to_string(expected);
}

}  // namespace quire::testing
