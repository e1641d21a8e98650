#include "tests/support/scenario_batch.h"

#include <numeric>
#include <utility>

namespace quire::testing {
namespace {

// More tokens than the longest text of any scenario.
constexpr uint32_t kTextStride = 1'000'000;

}  // namespace

Tokens Text(uint32_t text, uint32_t count) {
  Tokens tokens(count);
  std::iota(tokens.begin(), tokens.end(), text * kTextStride);
  return tokens;
}

Tokens Join(Tokens first, const Tokens& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

std::span<const uint32_t> Batch::Keep(std::vector<uint32_t> numbers) {
  return storage_->numbers.emplace_back(std::move(numbers));
}

std::span<const SequenceHandle> Batch::KeepHandles(std::vector<SequenceHandle> handles) {
  return storage_->handles.emplace_back(std::move(handles));
}

Batch& Batch::Add(Operation operation) {
  storage_->operations.push_back(std::move(operation));
  return *this;
}

Batch& Batch::Begin(SequenceHandle sequence, Tokens tokens, BeginOptions options) {
  BeginOp begin;
  begin.sequence = sequence;
  begin.tokens = Keep(std::move(tokens));
  begin.namespace_parts = std::move(options.namespace_parts);
  begin.allocate_tokens = options.allocate_tokens;
  begin.recompute_tail = options.recompute_tail;
  begin.skip_cache_read = options.skip_cache_read;
  begin.retention = std::move(options.retention);
  begin.digests = std::move(options.digests);
  begin.reserve_tokens = options.reserve_tokens;
  begin.reserve_sequences = options.reserve_sequences;
  return Add(std::move(begin));
}

Batch& Batch::Advance(SequenceHandle sequence, uint32_t start_length, Tokens tokens,
                      uint32_t ahead) {
  const auto count = static_cast<uint32_t>(tokens.size());
  return AdvanceColumns({sequence}, {start_length}, std::move(tokens),
                        count == 1 ? std::vector<uint32_t>{} : std::vector<uint32_t>{count}, {},
                        ahead);
}

Batch& Batch::AdvanceEach(std::vector<SequenceHandle> sequences,
                          std::vector<uint32_t> start_lengths, Tokens tokens, uint32_t ahead) {
  return AdvanceColumns(std::move(sequences), std::move(start_lengths), std::move(tokens), {}, {},
                        ahead);
}

Batch& Batch::AdvanceColumns(std::vector<SequenceHandle> sequences,
                             std::vector<uint32_t> start_lengths, Tokens tokens,
                             std::vector<uint32_t> token_counts, std::vector<uint32_t> aheads,
                             uint32_t ahead) {
  AdvanceOp advance;
  advance.sequences = KeepHandles(std::move(sequences));
  advance.start_lengths = Keep(std::move(start_lengths));
  advance.tokens = Keep(std::move(tokens));
  advance.token_counts = Keep(std::move(token_counts));
  advance.ahead = ahead;
  advance.aheads = Keep(std::move(aheads));
  return Add(advance);
}

Batch& Batch::Extend(SequenceHandle sequence, uint32_t start_length, uint32_t slots) {
  return Add(ExtendOp{sequence, start_length, slots});
}

Batch& Batch::Commit(SequenceHandle sequence, uint32_t start_length, uint32_t committed_length) {
  return Add(CommitOp{sequence, start_length, committed_length});
}

Batch& Batch::Fork(SequenceHandle sequence, uint32_t start_length,
                   std::vector<SequenceHandle> children) {
  return Add(ForkOp{sequence, start_length, KeepHandles(std::move(children))});
}

Batch& Batch::Truncate(SequenceHandle sequence, uint32_t start_length, uint32_t length) {
  return Add(TruncateOp{sequence, start_length, length});
}

Batch& Batch::Finish(SequenceHandle sequence, bool drop, std::vector<RetentionRange> retention) {
  return Add(FinishOp{sequence, drop, std::move(retention)});
}

Batch& Batch::AllOrNothing() {
  storage_->all_or_nothing = true;
  return *this;
}

Error ErrorOf(const StepResult& answer, uint32_t operation, uint32_t entry) {
  for (const OperationFailure& failure : answer.failures) {
    if (failure.operation == operation && failure.entry == entry) return failure.error;
  }
  return {};
}

}  // namespace quire::testing
