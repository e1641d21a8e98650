#include "tests/support/naive_engine.h"

#include <algorithm>
#include <sstream>

namespace quire::testing {
namespace {

// Numbers of a failure that the model predicts; texts are the engine's own.
std::string NumbersOf(const Error& error, const std::vector<ErrorDetail>& wanted) {
  std::string text;
  for (const ErrorDetail& detail : wanted) {
    text += " " + detail.name + "=" + std::string(error.Detail(detail.name));
  }
  return text;
}

std::string Describe(const OperationFailure& failure, const std::vector<ErrorDetail>& wanted) {
  std::ostringstream text;
  text << "operation " << failure.operation << " entry " << failure.entry << " part "
       << static_cast<int>(failure.part) << " reserved " << failure.reserved << " "
       << ReasonName(failure.error.reason) << NumbersOf(failure.error, wanted);
  return text.str();
}

std::string Describe(const CopyOrder& copy) {
  std::ostringstream text;
  text << "copy group " << copy.group << " " << Index(copy.source) << "->"
       << Index(copy.destination) << " tokens " << copy.tokens;
  return text.str();
}

}  // namespace

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

void NaiveEngine::Mismatch(const std::string& what) { mismatch_ += what + "\n"; }

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

void NaiveEngine::LoadHints(const StepResult& answer) {
  hints_.clear();
  for (const TableRun& run : answer.runs) {
    for (uint32_t i = 0; i < run.count; ++i) {
      hints_[{run.sequence, run.group, run.first_index + i}].push_back(
          answer.blocks.at(run.first_block + i));
    }
  }
  copy_hints_ = answer.copies;
  answered_failures_ = answer.failures;
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

void NaiveEngine::CompareFailures(const StepResult& answer) {
  const size_t count = std::max(answer.failures.size(), result_.failures.size());
  for (size_t i = 0; i < count; ++i) {
    const auto wanted = i < result_.failures.size() ? result_.failures[i].error.details
                                                    : std::vector<ErrorDetail>();
    const std::string mine =
        i < result_.failures.size() ? Describe(result_.failures[i], wanted) : "none";
    const std::string theirs =
        i < answer.failures.size() ? Describe(answer.failures[i], wanted) : "none";
    if (mine != theirs) Mismatch("failure: expected " + mine + ", got " + theirs);
  }
}

void NaiveEngine::CompareAnswer(const StepResult& answer) {
  CompareFailures(answer);
  if (answer.begins != result_.begins) {
    for (const BeginResult& begin : result_.begins) {
      Mismatch("begins differ; expected operation " + std::to_string(begin.operation) + " reused " +
               std::to_string(begin.reused_tokens) + " copied " +
               std::to_string(begin.copied_tokens) + " length " + std::to_string(begin.length));
    }
    for (const BeginResult& begin : answer.begins) {
      Mismatch("begins differ; got operation " + std::to_string(begin.operation) + " reused " +
               std::to_string(begin.reused_tokens) + " copied " +
               std::to_string(begin.copied_tokens) + " length " + std::to_string(begin.length));
    }
  }
  if (answer.forks != result_.forks) Mismatch("fork results differ");
  for (const CopyOrder& copy : copy_hints_) Mismatch("unexpected " + Describe(copy));
  for (const auto& [cell, blocks] : hints_) {
    if (blocks.empty()) continue;
    Mismatch("unexpected entry of sequence " + std::to_string(std::get<0>(cell)) + " group " +
             std::to_string(std::get<1>(cell)) + " index " + std::to_string(std::get<2>(cell)));
  }
  const PoolCounts& mine = result_.pool;
  if (answer.pool == mine) return;
  std::ostringstream text;
  text << "pool counts: expected free " << mine.free << " evictable " << mine.evictable
       << " fenced " << mine.fenced << ", got " << answer.pool.free << ", " << answer.pool.evictable
       << ", " << answer.pool.fenced;
  Mismatch(text.str());
}

void NaiveEngine::SetCell(const Cell& cell, BlockId block) {
  const auto& [handle, group, index] = cell;
  auto& table = pool_.sequences.at({actor_, handle}).tables.at(group);
  if (table.size() <= index) table.resize(index + 1, kNoBlock);
  table[index] = block;
  if (!in_step_) {
    unreported_[actor_].emplace_back(cell, block);
  } else if (follow_hints_) {
    ExpectEntry(cell, block);
  }
}

void NaiveEngine::ExpectEntry(const Cell& cell, BlockId block) {
  auto& entries = hints_[cell];
  std::ostringstream text;
  text << "sequence " << std::get<0>(cell) << " group " << std::get<1>(cell) << " index "
       << std::get<2>(cell) << ": expected block " << Index(block);
  if (entries.empty()) {
    Mismatch(text.str() + ", got no entry");
    return;
  }
  if (entries.front() != block) {
    Mismatch(text.str() + ", got " + std::to_string(Index(entries.front())));
  }
  entries.pop_front();
}

void NaiveEngine::Copy(uint32_t group, BlockId source, BlockId destination, uint32_t tokens) {
  pool_.copies.push_back({source, actor_, step_});
  pool_.copies.push_back({destination, actor_, step_});
  if (!follow_hints_) return;
  const CopyOrder mine{group, source, destination, tokens};
  if (copy_hints_.empty()) {
    Mismatch("expected " + Describe(mine) + ", got none");
    return;
  }
  if (!(copy_hints_.front() == mine)) {
    Mismatch("expected " + Describe(mine) + ", got " + Describe(copy_hints_.front()));
  }
  copy_hints_.erase(copy_hints_.begin());
}

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
  return blocks.size();
}

uint64_t NaiveEngine::Flush() {
  ApplyDue();
  std::vector<BlockId> blocks;
  for (const auto& [block, content] : pool_.content) {
    if (!content.dead) blocks.push_back(block);
  }
  for (const BlockId block : blocks) pool_.TakeOut(block);
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
