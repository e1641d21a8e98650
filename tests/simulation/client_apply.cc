// Answers, applied whole and in order, and what they must say.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "tests/simulation/client.h"

namespace quire::simulation {
namespace {

const OperationFailure* FailureOf(const StepResult& answer, const SentOp& op) {
  for (const OperationFailure& failure : answer.failures) {
    if (failure.operation == op.operation && failure.entry == op.entry) return &failure;
  }
  return nullptr;
}

template <typename Result>
const Result* ResultOf(const std::vector<Result>& results, uint32_t operation) {
  for (const Result& result : results) {
    if (result.operation == operation) return &result;
  }
  return nullptr;
}

bool Exists(const Sequence& sequence) { return sequence.begun && !sequence.ended; }

}  // namespace

Sequence* Client::Find(SequenceHandle handle) {
  for (const SequencePtr& sequence : sequences_) {
    if (sequence->handle == handle) return sequence.get();
  }
  return nullptr;
}

void Client::ApplyAnswers() {
  while (!under_way_.empty() && under_way_.front().reply != nullptr && !random_.OneIn(4)) {
    const StepUnderWay step = std::move(under_way_.front());
    under_way_.pop_front();
    Apply(step);
  }
}

void Client::Apply(const StepUnderWay& step) {
  const StepResult& answer = *step.reply->answer;
  Trace("applies answer ", step.number, ", ", step.ops.size(), " operations, ",
        answer.failures.size(), " failures, ", answer.copies.size(), " copies");
  new_children_.clear();
  ApplyOps(step);
  for (const SequenceNotice& notice : answer.notices) OnNotice(notice);
  for (const TableRun& run : answer.runs) ApplyRun(run, answer);
  if (!new_children_.empty()) Violate("the answer lacks runs of a fork's child");
  SettleTables();
  if (step.reply->tables != nullptr) CompareTables(*step.reply->tables);
  applied_ = step.number;
  device_.Apply(step.reply->answer);
  Forget();
}

void Client::ApplyOps(const StepUnderWay& step) {
  const StepResult& answer = *step.reply->answer;
  const bool undone = step.content->all_or_nothing && !answer.failures.empty();
  for (const SentOp& op : step.ops) {
    --op.sequence->unanswered;
    for (const SequencePtr& child : op.children) --child->unanswered;
    const OperationFailure* failure = FailureOf(answer, op);
    if (undone) {
      NeverHappened(op);
    } else if (failure != nullptr) {
      OnFailure(op, step.number, *failure);
    } else {
      OnSuccess(op, step);
    }
  }
}

// Content that was taken for bad has to be computed again.
void Client::OnNotice(const SequenceNotice& notice) {
  if (shared_.plan.misread == 0) Violate("a notice of bad content: ", notice.error.message);
  if (Sequence* sequence = Find(notice.sequence); sequence != nullptr) sequence->doomed = true;
}

// --- Success ---

void Client::OnSuccess(const SentOp& op, const StepUnderWay& step) {
  Sequence& sequence = *op.sequence;
  if (op.kind != OpKind::kBegin) {
    const bool at_start = op.kind == OpKind::kFinish || sequence.answered.length == op.start;
    if (!Exists(sequence) || !at_start) {
      Violate("an operation on sequence ", sequence.handle, " from length ", op.start,
              " succeeded at length ", sequence.answered.length, " (P1)");
      return;
    }
  }
  switch (op.kind) {
    case OpKind::kBegin:
      ApplyBegin(op, step);
      break;
    case OpKind::kAdvance:
      ApplyAdvance(op, step.number);
      break;
    case OpKind::kExtend:
      sequence.answered.Extend(step.number, op.amount, shared_.plan.engine.max_sequence_tokens);
      break;
    case OpKind::kCommit:
      sequence.answered.Commit(step.number, op.amount);
      NoteCommit(sequence, step.number);
      break;
    case OpKind::kFork:
      ApplyFork(op, step);
      break;
    case OpKind::kTruncate:
      ApplyTruncate(op, step.number);
      break;
    case OpKind::kFinish:
      sequence.ended = true;
      break;
  }
}

void Client::ApplyBegin(const SentOp& op, const StepUnderWay& step) {
  Sequence& sequence = *op.sequence;
  const BeginResult* result = ResultOf(step.reply->answer->begins, op.operation);
  if (result == nullptr) {
    Violate("the answer lacks the begin of sequence ", sequence.handle);
    return;
  }
  const auto& begin = std::get<BeginOp>(step.content->operations[op.operation]);
  const auto prompt = static_cast<uint32_t>(begin.tokens.size());
  const uint32_t wanted = op.allocate ? result->reused_tokens + *op.allocate : prompt;
  if (result->reused_tokens >= prompt || result->length != std::min(wanted, prompt) ||
      (!op.reads_cache && result->reused_tokens > 0)) {
    Violate("a begin of ", prompt, " tokens reuses ", result->reused_tokens, " and has length ",
            result->length, " (P4)");
  }
  sequence.begun = sequence.usable = true;
  sequence.launched = result->reused_tokens;
  sequence.tables = std::make_shared<Tables>(shared_.plan.engine.groups.size());
  sequence.answered.Begin(step.number, result->reused_tokens, result->length, prompt);
  if (!sequence.sent_known) sequence.sent = sequence.answered;
  sequence.sent.committed = std::max(sequence.sent.committed, result->reused_tokens);
  sequence.sent_known = true;
  NoteCommit(sequence, step.number);
}

void Client::ApplyAdvance(const SentOp& op, StepNumber step) {
  Sequence& sequence = *op.sequence;
  sequence.answered.CommitEntered(step);
  sequence.answered.Enter(op.amount);
  sequence.answered.KeepAhead(op.ahead, shared_.plan.engine.max_sequence_tokens);
  sequence.refused_at = 0;
  NoteCommit(sequence, step);
}

void Client::ApplyFork(const SentOp& op, const StepUnderWay& step) {
  const ForkResult* result = ResultOf(step.reply->answer->forks, op.operation);
  // After a truncate that failed it forks what the server still has.
  const bool foreseen = !op.sequence->adrift;
  if (result == nullptr || (foreseen && result->length != op.amount)) {
    Violate("a fork of sequence ", op.sequence->handle, " shares ",
            result == nullptr ? 0 : result->length, " tokens instead of ", op.amount, " (P7)");
    return;
  }
  op.sequence->answered.Fork(step.number);
  NoteCommit(*op.sequence, step.number);
  for (const SequencePtr& child : op.children) {
    child->begun = true;
    child->adrift = child->doomed = !foreseen;
    child->answered.Begin(step.number, result->length, result->length, result->length);
    child->tables = std::make_shared<Tables>(shared_.plan.engine.groups.size());
    NoteCommit(*child, step.number);
    new_children_.push_back({child, op.sequence, BlocksFor(result->length)});
  }
}

void Client::ApplyTruncate(const SentOp& op, StepNumber step) {
  Sequence& sequence = *op.sequence;
  sequence.answered.Truncate(step, op.amount);
  --sequence.truncates_unanswered;
  sequence.old_text = nullptr;
  for (auto& [committed_step, length] : sequence.commits) length = std::min(length, op.amount);
}

void Client::NoteCommit(Sequence& sequence, StepNumber step) {
  // Only the newest of the complete ones counts.
  while (sequence.commits.size() > 1 && sequence.commits[1].first <= completed_) {
    sequence.commits.pop_front();
  }
  sequence.commits.emplace_back(step, sequence.answered.committed);
}

// --- Failure ---

void Client::OnFailure(const SentOp& op, StepNumber step, const OperationFailure& failure) {
  Sequence& sequence = *op.sequence;
  Trace("sequence ", sequence.handle, ": ", failure.error.message);
  CheckReason(op, step, failure);
  if (op.kind == OpKind::kAdvance && failure.part != AdvancePart::kNone) {
    sequence.answered.CommitEntered(step);
    if (failure.part == AdvancePart::kAhead) sequence.answered.Enter(op.amount);
    NoteCommit(sequence, step);
  }
  const uint32_t held = Exists(sequence) ? sequence.answered.reserved : 0;
  if (failure.reserved != held) {
    Violate("a failure on sequence ", sequence.handle, " names ", failure.reserved,
            " slots, it holds ", held, " (P5)");
  }
  if (failure.error.reason == Reason::kPoolExhausted) {
    CheckClaim(op, failure);
    GiveWay(sequence);
  }
  if (failure.part == AdvancePart::kAhead) return;
  NeverHappened(op);
}

void Client::CheckReason(const SentOp& op, StepNumber step, const OperationFailure& failure) {
  const Sequence& sequence = *op.sequence;
  const Reason reason = failure.error.reason;
  // What its own earlier failure makes of it is not foreseen here.
  bool fits = sequence.adrift;
  if (fits) return;
  if (op.kind == OpKind::kBegin) {
    fits = reason == Reason::kPoolExhausted || reason == Reason::kDraining;
  } else if (!Exists(sequence)) {
    fits = reason == Reason::kSequenceNotFound;
  } else if (op.kind != OpKind::kFinish && sequence.answered.length != op.start) {
    fits = reason == Reason::kLengthMismatch;
  } else if (op.kind == OpKind::kAdvance || op.kind == OpKind::kExtend) {
    const bool fresh = sequence.answered.Entered(step) < sequence.answered.length + op.amount;
    fits = reason == Reason::kPoolExhausted || (reason == Reason::kNotComputed && fresh);
  } else if (op.kind == OpKind::kFork) {
    fits = reason == Reason::kPoolExhausted;
  } else if (op.kind == OpKind::kTruncate) {
    const auto window = [](const GroupSpec& group) { return group.is_window(); };
    const std::vector<GroupSpec>& groups = shared_.plan.engine.groups;
    fits = (reason == Reason::kWindowLost || reason == Reason::kPoolExhausted) &&
           std::any_of(groups.begin(), groups.end(), window);
  }
  if (fits) return;
  Violate("operation ", op.operation, " of step ", step, " on sequence ", sequence.handle,
          " from length ", op.start, " (answered ", sequence.answered.length,
          ") fails: ", failure.error.message);
}

// Growth inside a claim cannot fail (P10): in a window group, what window and one chunk hold at
// once. What was cut back and what waits for other workers' completion is not held against it.
void Client::CheckClaim(const SentOp& op, const OperationFailure& failure) {
  const Sequence& sequence = *op.sequence;
  if (sequence.claim == nullptr || sequence.claim->cut || !Exists(sequence)) return;
  if (failure.error.Detail("fenced") != "0") return;
  uint32_t slots = 0;
  if (op.kind == OpKind::kExtend) slots = op.amount;
  if (op.kind == OpKind::kAdvance) {
    slots = sequence.answered.length;
    slots += failure.part == AdvancePart::kAhead ? op.ahead : op.amount;
  }
  if (slots == 0 || slots > sequence.claim->reserve_tokens) return;
  const auto full = [](const GroupSpec& group) { return !group.is_window(); };
  const std::vector<GroupSpec>& groups = shared_.plan.engine.groups;
  if (!std::all_of(groups.begin(), groups.end(), full)) {
    const uint32_t end = std::max(slots, sequence.answered.reserved);
    if (end > sequence.answered.committed + sequence.claim->chunk) return;
    // What left a window may be held by others, and is owed then.
    const auto number = [&](std::string_view name) {
      return std::stoull(std::string(failure.error.Detail(name)));
    };
    const uint64_t open = number("free") + number("evictable");
    if (open < number("needed") + number("claimed_by_others")) return;
  }
  Violate("sequence ", sequence.handle, " may not grow to ", slots, " slots inside its claim of ",
          sequence.claim->reserve_tokens, " (P10): ", failure.error.message);
}

// Somebody must let go, or all wait for each other.
void Client::GiveWay(Sequence& sequence) {
  sequence.refused_at = now();
  if (random_.OneIn(8)) sequence.doomed = true;
  if (!random_.OneIn(6)) return;
  for (auto youngest = sequences_.rbegin(); youngest != sequences_.rend(); ++youngest) {
    if (!(*youngest)->begun || (*youngest)->ending) continue;
    (*youngest)->doomed = true;
    return;
  }
}

void Client::NeverHappened(const SentOp& op) {
  Sequence& sequence = *op.sequence;
  sequence.stalled = true;
  if (op.kind == OpKind::kTruncate) {
    --sequence.truncates_unanswered;
    sequence.doomed = sequence.adrift = true;
  }
  if (op.kind == OpKind::kFork) {
    for (const SequencePtr& child : op.children) child->usable = false;
    if (op.cuts) sequence.doomed = sequence.adrift = true;
  }
  if (op.kind == OpKind::kFinish) {
    sequence.ending = false;
    sequence.doomed = true;
  }
}

// Sequences that ended, or never began and are named by nothing under way.
void Client::Forget() {
  std::erase_if(sequences_, [](const SequencePtr& sequence) {
    if (sequence->ended) return true;
    const bool failed = !sequence->begun && (sequence->stalled || !sequence->usable);
    return failed && sequence->unanswered == 0;
  });
}

}  // namespace quire::simulation
