#include "worker/client/step.h"

#include <utility>

namespace quire::client {

OperationId Step::Add(Operation operation) {
  operations_.push_back(std::move(operation));
  ++count_;
  return {.operation = static_cast<uint32_t>(operations_.size() - 1)};
}

OperationId Step::Begin(BeginParams params) { return Add(std::move(params)); }

OperationId Step::Advance(SequenceHandle sequence, uint32_t start_length,
                          std::span<const TokenId> tokens, uint32_t ahead) {
  if (operations_.empty() || !std::holds_alternative<AdvanceColumns>(operations_.back())) {
    operations_.emplace_back(AdvanceColumns{});
  }
  AdvanceColumns& columns = std::get<AdvanceColumns>(operations_.back());
  columns.sequences.push_back(sequence);
  columns.start_lengths.push_back(start_length);
  columns.tokens.insert(columns.tokens.end(), tokens.begin(), tokens.end());
  columns.token_counts.push_back(static_cast<uint32_t>(tokens.size()));
  columns.aheads.push_back(ahead);
  ++count_;
  return {.operation = static_cast<uint32_t>(operations_.size() - 1),
          .entry = static_cast<uint32_t>(columns.sequences.size() - 1)};
}

OperationId Step::Extend(SequenceHandle sequence, uint32_t start_length, uint32_t slots) {
  return Add(ExtendParams{sequence, start_length, slots});
}

OperationId Step::Commit(SequenceHandle sequence, uint32_t start_length,
                         uint32_t committed_length) {
  return Add(CommitParams{sequence, start_length, committed_length});
}

OperationId Step::Fork(SequenceHandle sequence, uint32_t start_length,
                       std::vector<SequenceHandle> children) {
  return Add(ForkParams{sequence, start_length, std::move(children)});
}

OperationId Step::Truncate(SequenceHandle sequence, uint32_t start_length, uint32_t length) {
  return Add(TruncateParams{sequence, start_length, length});
}

OperationId Step::Finish(SequenceHandle sequence, bool drop,
                         std::vector<RetentionRange> retention) {
  return Add(FinishParams{sequence, drop, std::move(retention)});
}

}  // namespace quire::client
