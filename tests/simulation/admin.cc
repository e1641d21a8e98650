#include "tests/simulation/admin.h"

#include <chrono>
#include <utility>

namespace quire::simulation {

PrefixSelector Admin::Select(const std::vector<TokenId>& tokens, uint32_t name_space) {
  PrefixSelector prefix;
  prefix.namespace_parts = NameSpaceParts(name_space);
  prefix.tokens = tokens;
  return prefix;
}

void Admin::Run() {
  CacheEngine* engine = server_.engine();
  if (engine == nullptr || server_.paused(shared_.judge.now())) return;
  Random& random = shared_.random;
  const ChaosPlan& chaos = shared_.plan.chaos;
  if (random.OneIn(chaos.flush)) {
    server_.Flush();
    server_.CountOperation();
  }
  if (random.OneIn(chaos.end_worker)) {
    const auto workers = engine->ListWorkers();
    if (workers.empty()) return;
    const WorkerView& victim = workers[random.Below(static_cast<uint32_t>(workers.size()))];
    shared_.judge.Trace("ends ", victim.name);
    if (!engine->EndWorker(victim.name).ok()) shared_.judge.Violate("cannot end ", victim.name);
    server_.CountOperation();
  }
  if (random.OneIn(chaos.drain)) {
    server_.Drain(shared_.judge.now() + random.Below(300));
    pins_.clear();
  }
  if (!random.OneIn(chaos.admin)) return;
  server_.CountOperation();
  CheckPins();
  switch (random.Below(8)) {
    case 0:
    case 1:
      Pin();
      break;
    case 2:
      Unpin();
      break;
    case 3:
      if (random.OneIn(4)) EvictPrefix();
      break;
    default:
      Look();
  }
}

void Admin::Pin() {
  if (pins_.size() >= 2) return;
  Prompt prompt = shared_.prompts.Draw();
  if (!prompt.digests.empty()) return;
  const Tick duration = shared_.random.Between(5, 100);
  const auto pinned = server_.engine()->PinPrefix(Select(prompt.text.tokens, prompt.name_space),
                                                  "admin", std::chrono::milliseconds(duration));
  if (!pinned.ok()) return;
  pins_.push_back({pinned->pin_id, server_.engine()->options().epoch, shared_.removals,
                   shared_.judge.now() + duration, prompt.name_space, std::move(prompt.text.tokens),
                   pinned->pinned_tokens});
}

void Admin::Unpin() {
  if (pins_.empty()) return;
  const Pinned pin = pins_.back();
  pins_.pop_back();
  if (shared_.plan.engine.memory == PoolMemoryKind::kWorker) {
    server_.engine()->UnpinPrefix(pin.id).IgnoreError();
    return;
  }
  const bool lives =
      pin.epoch == server_.engine()->options().epoch && shared_.judge.now() < pin.until;
  if (server_.engine()->UnpinPrefix(pin.id).ok()) {
    if (!lives) shared_.judge.Violate("pin ", pin.id, " outlives its time");
  } else if (lives && pin.removals == shared_.removals) {
    shared_.judge.Violate("pin ", pin.id, " is gone before its time");
  }
}

// Until its deadline a pinned prefix is found.
void Admin::CheckPins() {
  const Epoch epoch = server_.engine()->options().epoch;
  // One ends with the memory of a worker.
  if (shared_.plan.engine.memory == PoolMemoryKind::kWorker) return;
  std::erase_if(pins_, [&](const Pinned& pin) {
    return pin.epoch != epoch || shared_.judge.now() >= pin.until;
  });
  for (const Pinned& pin : pins_) {
    if (pin.removals != shared_.removals) continue;
    std::vector<TokenId> tokens(pin.tokens.begin(), pin.tokens.begin() + pin.pinned);
    tokens.push_back(0);
    const auto found = server_.engine()->PeekPrefix(Select(tokens, pin.name_space));
    if (found.ok() && *found >= pin.pinned) continue;
    shared_.judge.Violate(pin.id, " holds ", pin.pinned, " tokens, ", found.value_or(0),
                          " are found");
  }
}

void Admin::EvictPrefix() {
  const Prompt prompt = shared_.prompts.Draw();
  std::vector<TokenId> tokens = prompt.text.tokens;
  // Of no token: the whole namespace.
  tokens.resize(shared_.random.Below(static_cast<uint32_t>(tokens.size()) + 1));
  ++shared_.removals;
  if (!prompt.digests.empty()) return;
  const uint64_t promised = server_.engine()->Stats().claimed_blocks;
  if (!server_.engine()->EvictPrefix(Select(tokens, prompt.name_space)).ok()) {
    shared_.judge.Violate("a prefix cannot be evicted");
  }
  const uint64_t left = server_.engine()->Stats().claimed_blocks;
  if (left < promised) {
    shared_.judge.Violate("of ", promised, " promised blocks an evicted prefix leaves ", left,
                          " (P10)");
  }
}

// Reading changes nothing; the audit after it would see.
void Admin::Look() {
  CacheEngine& engine = *server_.engine();
  const Prompt prompt = shared_.prompts.Draw();
  if (prompt.digests.empty() &&
      !engine.PeekPrefix(Select(prompt.text.tokens, prompt.name_space)).ok()) {
    shared_.judge.Violate("a prefix cannot be peeked at");
  }
  const auto sequences = engine.ListSequences("");
  if (!sequences.empty() &&
      !engine.GetSequence(sequences.front().worker, sequences.front().handle).ok()) {
    shared_.judge.Violate("a listed sequence is not found");
  }
  engine.ListUnavailable();
  engine.ListPins();
}

void Admin::EndPins() {
  if (server_.engine() == nullptr) return;
  for (const PinView& pin : server_.engine()->ListPins()) {
    if (!server_.engine()->UnpinPrefix(pin.pin_id).ok()) {
      shared_.judge.Violate(pin.pin_id, " is listed and cannot be ended");
    }
  }
  pins_.clear();
}

}  // namespace quire::simulation
