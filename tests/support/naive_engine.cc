#include "tests/support/naive_engine.h"

#include <algorithm>

namespace quire::testing {
NaiveEngine::NaiveEngine(const EngineOptions& options, const Clock& clock)
    : options_(options), clock_(clock) {
  pool_.block_count = options.block_count;
  pool_.block_tokens = options.block_tokens;
  pool_.groups = options.groups;
}

int NaiveEngine::Attach(const std::string& name, const std::string& model_fingerprint) {
  workers_.push_back({name, model_fingerprint});
  return static_cast<int>(workers_.size()) - 1;
}

uint32_t NaiveEngine::SpaceOf(const std::string& model_fingerprint, const NamespaceParts& parts) {
  const std::string key = NamespaceKey(model_fingerprint, options_.layout_tag, parts);
  return spaces_.emplace(key, spaces_.size()).first->second;
}

Items NaiveEngine::ItemsOf(std::span<const TokenId> tokens,
                           const std::vector<DigestRange>& digests) {
  Items items;
  for (uint32_t i = 0; i < tokens.size(); ++i) {
    std::tuple<TokenId, std::optional<Digest>, uint32_t> content{tokens[i], std::nullopt, 0};
    for (const DigestRange& range : digests) {
      if (i >= range.start && i < range.end) content = {tokens[i], range.digest, i - range.start};
    }
    items.push_back(items_.emplace(content, static_cast<char32_t>(items_.size())).first->second);
  }
  return items;
}

void NaiveEngine::ApplyDue() {
  const TimePoint now = clock_.Now();
  std::erase_if(pool_.pins, [&](const NaivePin& pin) { return pin.deadline <= now; });
  pool_.ExpireRetention(now);
}

// The content may be seen by all, unless other content of the same place is seen already: then the
// worker's tables move over.
void NaiveEngine::Publish(NaiveContent& content, BlockId block, StepNumber step) {
  BlockId existing = kNoBlock;
  for (const auto& [other, theirs] : pool_.content) {
    if (other != block && theirs.is_public && !theirs.dead && theirs.SamePlace(content)) {
      existing = other;
    }
  }
  if (existing == kNoBlock) {
    content.is_public = true;
    return;
  }
  // What was released with the duplicate is released with the block that stands for it now.
  const std::vector<NaiveHold> releases(pool_.releases.begin(), pool_.releases.end());
  for (const NaiveHold& release : releases) {
    if (release.block == block && release.worker == actor_) {
      pool_.releases.push_back({existing, release.worker, release.step});
    }
  }
  pool_.content.erase(block);
  Remap(block, existing, step);
}

// Every table of the worker moves from a duplicate to the block that is there already.
void NaiveEngine::Remap(BlockId from, BlockId to, StepNumber step) {
  for (auto& [key, sequence] : pool_.sequences) {
    if (key.first != actor_) continue;
    for (uint32_t group = 0; group < sequence.tables.size(); ++group) {
      for (uint32_t i = 0; i < sequence.tables[group].size(); ++i) {
        if (sequence.tables[group][i] != from) continue;
        SetCell({key.second, group, i}, to);
        pool_.LetGo(from, actor_, step, clock_.Now());
      }
    }
  }
}

void NaiveEngine::ApplyCompletion(int worker, StepNumber completed, StepNumber step) {
  NaiveWorker& state = workers_.at(static_cast<size_t>(worker));
  if (completed <= state.completed) return;
  state.completed = completed;
  const auto done = [&](const NaiveHold& hold) {
    return hold.worker == worker && hold.step <= completed;
  };
  std::erase_if(pool_.releases, done);
  std::erase_if(pool_.copies, done);
  std::map<uint64_t, BlockId> ripe;
  for (auto& [block, content] : pool_.content) {
    if (content.is_public || content.worker != worker || content.step > completed) continue;
    if (content.dead) {
      content.is_public = true;
    } else {
      ripe.emplace(content.seal_order, block);
    }
  }
  for (const auto& [order, block] : ripe) Publish(pool_.content.at(block), block, step);
}

std::string NaiveEngine::Step(int worker, const StepParams& params, const StepResult& answer) {
  LoadHints(answer);
  follow_hints_ = true;
  // A step that fails as a whole names no blocks.
  RunStep(worker, params, !params.all_or_nothing || answer.failures.empty());
  CompareAnswer(answer);
  return mismatch_;
}

StepResult NaiveEngine::Predict(int worker, const StepParams& params) {
  LoadHints({});
  follow_hints_ = false;
  RunStep(worker, params, false);
  return result_;
}

void NaiveEngine::RunStep(int worker, const StepParams& params, bool choices_known) {
  actor_ = worker;
  step_ = params.step;
  in_step_ = true;
  result_ = {};
  mismatch_.clear();
  ApplyDue();
  workers_.at(static_cast<size_t>(worker)).last_step = params.step;
  if (follow_hints_) {
    for (const auto& [cell, block] : unreported_[worker]) ExpectEntry(cell, block);
  }
  unreported_.erase(worker);
  ApplyCompletion(worker, params.completed_step, params.step);
  follow_hints_ = choices_known;
  hidden_choice_ = false;
  const NaivePool before = pool_;
  const StepResult result_before = result_;
  for (uint32_t i = 0; i < params.operations.size(); ++i) {
    Run(i, params.operations[i]);
    if (!params.all_or_nothing || result_.failures.empty()) continue;
    pool_ = before;
    const auto failures = result_.failures;
    result_ = result_before;
    result_.failures = failures;
    break;
  }
  if (!choices_known && hidden_choice_ && !answered_failures_.empty()) {
    pool_ = before;
    result_ = result_before;
    result_.failures = answered_failures_;
  }
  result_.pool.free = static_cast<uint32_t>(pool_.FreeFor(actor_).size());
  result_.pool.evictable = static_cast<uint32_t>(pool_.EvictableFor(actor_).size());
  result_.pool.fenced = FencedFor(actor_);
}

}  // namespace quire::testing
