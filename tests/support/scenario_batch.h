// A step's operations under construction, owning the memory that the engine's spans point into.
//
//   worker.Do(Batch().Fork(1, 6, {2, 3}).Advance(2, 6, {7}));
//
// Copies share their operations: a batch is built once and then only read.
#ifndef QUIRE_TESTS_SUPPORT_SCENARIO_BATCH_H_
#define QUIRE_TESTS_SUPPORT_SCENARIO_BATCH_H_

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cache_service/engine/step.h"

namespace quire::testing {

using Tokens = std::vector<TokenId>;

// `count` tokens that no other text contains.
Tokens Text(uint32_t text, uint32_t count);
Tokens Join(Tokens first, const Tokens& second);

struct BeginOptions {
  NamespaceParts namespace_parts{};
  std::optional<uint32_t> allocate_tokens{};
  uint32_t recompute_tail = 0;
  bool skip_cache_read = false;
  std::vector<RetentionRange> retention{};
  std::vector<DigestRange> digests{};
  uint32_t reserve_tokens = 0;
  uint32_t reserve_sequences = 0;
};

class Batch {
 public:
  Batch() : storage_(std::make_shared<Storage>()) {}

  Batch& Begin(SequenceHandle sequence, Tokens tokens, BeginOptions options = {});
  Batch& Advance(SequenceHandle sequence, uint32_t start_length, Tokens tokens, uint32_t ahead = 0);
  // One token each.
  Batch& AdvanceEach(std::vector<SequenceHandle> sequences, std::vector<uint32_t> start_lengths,
                     Tokens tokens, uint32_t ahead = 0);
  Batch& Extend(SequenceHandle sequence, uint32_t start_length, uint32_t slots);
  Batch& Commit(SequenceHandle sequence, uint32_t start_length, uint32_t committed_length);
  Batch& Fork(SequenceHandle sequence, uint32_t start_length, std::vector<SequenceHandle> children);
  Batch& Truncate(SequenceHandle sequence, uint32_t start_length, uint32_t length);
  Batch& Finish(SequenceHandle sequence, bool drop = false,
                std::vector<RetentionRange> retention = {});
  // An advance whose columns are taken as they are, for bad input.
  Batch& AdvanceColumns(std::vector<SequenceHandle> sequences, std::vector<uint32_t> start_lengths,
                        Tokens tokens, std::vector<uint32_t> token_counts,
                        std::vector<uint32_t> aheads, uint32_t ahead = 0);
  Batch& AllOrNothing();

  std::span<const Operation> operations() const { return storage_->operations; }

  bool all_or_nothing() const { return storage_->all_or_nothing; }

 private:
  struct Storage {
    std::deque<std::vector<uint32_t>> numbers;
    std::deque<std::vector<SequenceHandle>> handles;
    std::vector<Operation> operations;
    bool all_or_nothing = false;
  };

  std::span<const uint32_t> Keep(std::vector<uint32_t> numbers);
  std::span<const SequenceHandle> KeepHandles(std::vector<SequenceHandle> handles);
  Batch& Add(Operation operation);

  std::shared_ptr<Storage> storage_;
};

// The failure of an operation (of an entry) in an answer; an Error that is ok() if it succeeded.
Error ErrorOf(const StepResult& answer, uint32_t operation = 0, uint32_t entry = 0);

}  // namespace quire::testing

#endif  // QUIRE_TESTS_SUPPORT_SCENARIO_BATCH_H_
