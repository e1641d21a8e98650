// One step: operations for many sequences, in order.
//
//   Step step;
//   step.Begin({.sequence = 7, .tokens = prompt, .allocate_tokens = 512});
//   const OperationId id = step.Advance(3, /*start_length=*/20, {&token, 1}, /*ahead=*/4);
//   client.Submit(std::move(step));
//   ... answer.FailureOf(id) ...
//
// Advances that follow one another travel as one operation with columns, so batch them together.
#ifndef QUIRE_WORKER_CLIENT_STEP_H_
#define QUIRE_WORKER_CLIENT_STEP_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "worker/client/types.h"

namespace quire::client {

// Names an operation of a step: its index, and the entry if it is part of an advance.
struct OperationId {
  uint32_t operation = 0;
  uint32_t entry = 0;

  friend auto operator<=>(const OperationId&, const OperationId&) = default;
};

// Fields as in quire.v1.BeginOperation.
struct BeginParams {
  SequenceHandle sequence = 0;
  std::vector<TokenId> tokens{};
  Namespace name_space{};
  std::optional<uint32_t> allocate_tokens{};
  uint32_t recompute_tail = 0;
  bool skip_cache_read = false;
  std::vector<RetentionRange> retention{};
  std::vector<DigestRange> digests{};
  uint32_t reserve_tokens = 0;
  uint32_t reserve_sequences = 0;
};

struct AdvanceColumns {
  std::vector<SequenceHandle> sequences{};
  std::vector<uint32_t> start_lengths{};
  std::vector<TokenId> tokens{};
  std::vector<uint32_t> token_counts{};
  std::vector<uint32_t> aheads{};
};

struct ExtendParams {
  SequenceHandle sequence = 0;
  uint32_t start_length = 0;
  uint32_t slots = 0;
};

struct CommitParams {
  SequenceHandle sequence = 0;
  uint32_t start_length = 0;
  uint32_t committed_length = 0;
};

struct ForkParams {
  SequenceHandle sequence = 0;
  uint32_t start_length = 0;
  std::vector<SequenceHandle> children{};
};

struct TruncateParams {
  SequenceHandle sequence = 0;
  uint32_t start_length = 0;
  uint32_t length = 0;
};

struct FinishParams {
  SequenceHandle sequence = 0;
  bool drop = false;
  std::vector<RetentionRange> retention{};
};

using Operation = std::variant<BeginParams, AdvanceColumns, ExtendParams, CommitParams, ForkParams,
                               TruncateParams, FinishParams>;

// A value; not thread-safe. The rules of each operation stand in quire/v1/cache_service.proto.
class Step {
 public:
  OperationId Begin(BeginParams params);
  // Commits what entered in earlier steps, enters `tokens`, keeps `ahead` slots beyond.
  OperationId Advance(SequenceHandle sequence, uint32_t start_length,
                      std::span<const TokenId> tokens, uint32_t ahead = 0);
  OperationId Extend(SequenceHandle sequence, uint32_t start_length, uint32_t slots);
  OperationId Commit(SequenceHandle sequence, uint32_t start_length, uint32_t committed_length);
  // A step that forks a sequence may name it once more only to finish it: the answer does not say
  // whether a change of the parent's table came before or after the fork.
  OperationId Fork(SequenceHandle sequence, uint32_t start_length,
                   std::vector<SequenceHandle> children);
  OperationId Truncate(SequenceHandle sequence, uint32_t start_length, uint32_t length);
  OperationId Finish(SequenceHandle sequence, bool drop = false,
                     std::vector<RetentionRange> retention = {});

  // If one operation fails, none happens. What the step's counters complete happens all the same.
  void set_all_or_nothing(bool value) { all_or_nothing_ = value; }

  bool all_or_nothing() const { return all_or_nothing_; }

  // As the server counts them: each entry of an advance is one.
  uint32_t operation_count() const { return count_; }

  bool empty() const { return operations_.empty(); }

  const std::vector<Operation>& operations() const { return operations_; }

 private:
  OperationId Add(Operation operation);

  std::vector<Operation> operations_;
  uint32_t count_ = 0;
  bool all_or_nothing_ = false;
};

}  // namespace quire::client

#endif  // QUIRE_WORKER_CLIENT_STEP_H_
