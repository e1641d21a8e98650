// The operations that a client sends, and what they make of its lengths.
#include <algorithm>
#include <chrono>
#include <utility>

#include "tests/simulation/client.h"

namespace quire::simulation {

SentOp& Client::Add(OpKind kind, const SequencePtr& sequence, Operation operation) {
  CloseAdvance();
  std::vector<Operation>& operations = making_->content->operations;
  SentOp op{.kind = kind, .operation = static_cast<uint32_t>(operations.size())};
  op.sequence = sequence;
  op.start = sequence->sent.length;
  operations.push_back(std::move(operation));
  ++sequence->unanswered;
  making_->ops.push_back(std::move(op));
  return making_->ops.back();
}

SequencePtr Client::NewSequence(Text text, uint32_t name_space) {
  auto sequence = std::make_shared<Sequence>();
  sequence->handle = next_handle_++;
  sequence->name_space = name_space;
  sequence->text = std::make_shared<Text>(std::move(text));
  sequence->known = sequence->bound = sequence->text->size();
  sequence->removals_at_begin = shared_.removals;
  const uint32_t longest = shared_.plan.engine.max_sequence_tokens;
  sequence->target = random_.Between(std::min(sequence->known, longest), longest);
  sequences_.push_back(sequence);
  return sequence;
}

void Client::AddBegin() {
  Prompt prompt = shared_.prompts.Draw();
  const uint32_t length = prompt.text.size();
  BeginOp begin;
  StepContent& content = *making_->content;
  begin.tokens = content.numbers.emplace_back(prompt.text.tokens);
  const SequencePtr sequence = NewSequence(std::move(prompt.text), prompt.name_space);
  begin.sequence = sequence->handle;
  begin.namespace_parts = NameSpaceParts(prompt.name_space);
  sequence->has_image = !prompt.digests.empty();
  begin.digests = std::move(prompt.digests);
  if (random_.OneIn(3)) begin.allocate_tokens = random_.Below(length + 1);
  if (random_.OneIn(10)) begin.recompute_tail = random_.Below(length + 2);
  begin.skip_cache_read = random_.OneIn(12);
  if (random_.OneIn(6)) {
    RetentionRange range{0, kRangeToEnd, random_.Below(101), {}};
    if (random_.OneIn(2)) range.duration = std::chrono::milliseconds(random_.Between(1, 200));
    begin.retention = {range};
  }
  if (random_.OneIn(shared_.plan.claims)) {
    begin.reserve_tokens = random_.Between(length, shared_.plan.engine.max_sequence_tokens);
    begin.reserve_sequences = random_.Below(4);
    sequence->claim = std::make_shared<ClaimNote>(ClaimNote{begin.reserve_tokens, length});
    sequence->target = std::max(sequence->target, begin.reserve_tokens);
  }
  const std::optional<uint32_t> allocate = begin.allocate_tokens;
  const bool reads = !begin.skip_cache_read;
  SentOp& op = Add(OpKind::kBegin, sequence, std::move(begin));
  op.allocate = allocate;
  op.reads_cache = reads;
  sequence->sent.Begin(making_->number, 0, allocate ? 0 : length, length);
  sequence->sent_known = !allocate;
  if (!allocate && random_.OneIn(2)) AddExtend(sequence, length + plan_.ahead);
}

// Commits what entered before, enters what is known by now, keeps slots ahead.
void Client::AddAdvance(const SequencePtr& sequence) {
  Lengths& sent = sequence->sent;
  if (sequence->launched < sent.Entered(making_->number)) return;
  const uint32_t most = shared_.plan.engine.max_sequence_tokens;
  uint32_t count = 0;
  if (sent.length >= sent.given) count = std::min(sequence->known, most) - sent.length;
  if (random_.OneIn(4)) count = random_.Below(count + 1);
  const uint32_t ahead = random_.OneIn(8) ? random_.Below(6) : plan_.ahead;
  if (count == 0 && sent.reserved >= std::min(sent.length + ahead, most) && !random_.OneIn(8)) {
    return;
  }
  SentOp op{.kind = OpKind::kAdvance,
            .operation = static_cast<uint32_t>(making_->content->operations.size()),
            .entry = static_cast<uint32_t>(columns_.handles.size())};
  op.sequence = sequence;
  op.start = sent.length;
  op.amount = count;
  op.ahead = ahead;
  making_->ops.push_back(std::move(op));
  ++sequence->unanswered;
  columns_.handles.push_back(sequence->handle);
  columns_.starts.push_back(sent.length);
  columns_.counts.push_back(count);
  columns_.aheads.push_back(ahead);
  const auto first = sequence->text->tokens.begin() + sent.length;
  columns_.tokens.insert(columns_.tokens.end(), first, first + count);
  sent.CommitEntered(making_->number);
  sent.Enter(count);
  sent.KeepAhead(ahead, most);
}

void Client::CloseAdvance() {
  if (columns_.handles.empty()) return;
  StepContent& content = *making_->content;
  const auto store = [&](std::vector<uint32_t>& column) {
    return std::span<const uint32_t>(content.numbers.emplace_back(std::exchange(column, {})));
  };
  AdvanceOp advance;
  const auto all_equal = [](const std::vector<uint32_t>& column, uint32_t value) {
    return std::all_of(column.begin(), column.end(), [&](uint32_t x) { return x == value; });
  };
  const bool one_each = all_equal(columns_.counts, 1) && random_.OneIn(2);
  const uint32_t ahead = columns_.aheads.front();
  const bool one_ahead = all_equal(columns_.aheads, ahead) && random_.OneIn(2);
  advance.sequences = content.handles.emplace_back(std::exchange(columns_.handles, {}));
  advance.start_lengths = store(columns_.starts);
  advance.tokens = store(columns_.tokens);
  if (!one_each) advance.token_counts = store(columns_.counts);
  if (one_ahead) advance.ahead = ahead;
  if (!one_ahead) advance.aheads = store(columns_.aheads);
  columns_ = {};
  content.operations.emplace_back(std::move(advance));
}

void Client::AddExtend(const SequencePtr& sequence, uint32_t slots) {
  SentOp& op =
      Add(OpKind::kExtend, sequence, ExtendOp{sequence->handle, sequence->sent.length, slots});
  op.amount = slots;
  sequence->sent.Extend(making_->number, slots, shared_.plan.engine.max_sequence_tokens);
}

void Client::AddCommit(const SequencePtr& sequence) {
  Lengths& sent = sequence->sent;
  const uint32_t computed =
      std::min(sequence->launched, std::max(sent.Entered(making_->number), sent.committed));
  if (computed < sent.committed) return;
  const uint32_t to = random_.Between(sent.committed, computed);
  Add(OpKind::kCommit, sequence, CommitOp{sequence->handle, sent.length, to}).amount = to;
  sent.Commit(making_->number, to);
}

// What the device computed beyond `length` counts no more; the host goes on with a token of its
// own.
void Client::CutText(Sequence& sequence, uint32_t length) {
  sequence.text = std::make_shared<Text>(sequence.text->Prefix(length));
  sequence.text->Append(shared_.prompts.Sample(sequence.text->last()));
  sequence.known = sequence.bound = length + 1;
  sequence.launched = std::min(sequence.launched, length);
  for (UnknownLaunch& launch : sequence.unknown) launch.stale = true;
}

SequencePtr Client::MakeChild(const Sequence& parent, uint32_t shared) {
  const SequencePtr child = NewSequence(parent.text->Prefix(shared), parent.name_space);
  CutText(*child, shared);
  child->launched = shared;
  child->usable = true;
  child->claim = parent.claim;
  child->cut = parent.cut;
  child->has_image = parent.has_image;
  child->removals_at_begin = parent.removals_at_begin;
  child->sent.Begin(making_->number, shared, shared, shared);
  return child;
}

void Client::AddFork(const SequencePtr& sequence) {
  Lengths& sent = sequence->sent;
  const uint32_t shared = sent.Shared(making_->number);
  if (shared == 0 || sequence->launched < shared) return;
  if (sequences_.size() >= plan_.most_sequences + 3) return;
  std::vector<SequencePtr> children;
  std::vector<SequenceHandle> handles;
  for (uint32_t i = random_.Between(1, 2); i > 0; --i) {
    children.push_back(MakeChild(*sequence, shared));
    ++children.back()->unanswered;
    handles.push_back(children.back()->handle);
  }
  StepContent& content = *making_->content;
  ForkOp fork{sequence->handle, sent.length, content.handles.emplace_back(std::move(handles))};
  SentOp& op = Add(OpKind::kFork, sequence, fork);
  op.children = std::move(children);
  op.amount = shared;
  op.cuts = sent.length < sent.given;
  sent.Fork(making_->number);
  if (op.cuts) CutText(*sequence, sent.length);
}

void Client::AddTruncate(const SequencePtr& sequence) {
  Lengths& sent = sequence->sent;
  const uint32_t cut = random_.OneIn(3) ? random_.Below(sent.length + 1) : random_.Below(6);
  const uint32_t length = sent.length - std::min(cut, sent.length);
  if (sequence->truncates_unanswered++ == 0) {
    sequence->old_text = sequence->text;
    sequence->old_launched = sequence->launched;
  }
  if (sequence->claim != nullptr) sequence->claim->cut = true;
  sequence->cut = true;
  Add(OpKind::kTruncate, sequence, TruncateOp{sequence->handle, sent.length, length}).amount =
      length;
  sent.Truncate(making_->number, length);
  CutText(*sequence, length);
}

void Client::AddFinish(const SequencePtr& sequence) {
  FinishOp finish{.sequence = sequence->handle, .drop = random_.OneIn(8)};
  if (random_.OneIn(10)) finish.retention = {{0, kRangeToEnd, random_.Below(101), {}}};
  Add(OpKind::kFinish, sequence, std::move(finish));
  sequence->ending = true;
  if (!sequence->has_image && random_.OneIn(2)) {
    shared_.prompts.Remember(sequence->text->Prefix(sequence->known), sequence->name_space);
  }
}

// Content of steps that this request reports complete, held by a sequence that keeps it.
void Client::AddProbe(Request& request) {
  const auto full = [](const GroupSpec& group) { return !group.is_window(); };
  const std::vector<GroupSpec>& groups = shared_.plan.engine.groups;
  if (!plan_.map_memory || sequences_.empty()) return;
  Sequence& sequence = *sequences_[random_.Below(static_cast<uint32_t>(sequences_.size()))];
  if (!sequence.begun || sequence.ending || sequence.adrift || sequence.has_image) return;
  if (sequence.truncates_unanswered > 0) return;
  // What came back into a window may be of a later step.
  if (sequence.cut && !std::all_of(groups.begin(), groups.end(), full)) return;
  const StepNumber completed =
      plan_.wire == Wire::kLockStep ? request.step - 1 : request.completed_step;
  uint32_t complete = 0;
  for (const auto& [step, length] : sequence.commits) {
    if (step <= completed) complete = std::max(complete, length);
  }
  const uint32_t block_tokens = shared_.plan.engine.block_tokens;
  complete -= complete % block_tokens;
  if (complete == 0) return;
  const std::vector<TokenId>& tokens = sequence.text->tokens;
  request.probe = PublicProbe{sequence.name_space,
                              {tokens.begin(), tokens.begin() + complete},
                              sequence.removals_at_begin,
                              sequence.handle};
}

}  // namespace quire::simulation
