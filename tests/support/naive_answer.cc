// The answer of a step against the model: entries and copies as they happen, the rest at the end.
#include <algorithm>
#include <sstream>

#include "tests/support/naive_engine.h"

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

void NaiveEngine::Mismatch(const std::string& what) { mismatch_ += what + "\n"; }

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

}  // namespace quire::testing
