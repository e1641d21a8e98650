// The worker's copy of its block tables, kept by applying answers whole and in order.
#ifndef QUIRE_WORKER_CLIENT_BLOCK_TABLES_H_
#define QUIRE_WORKER_CLIENT_BLOCK_TABLES_H_

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "worker/client/answer.h"
#include "worker/client/step.h"

namespace quire::client {

// A sequence as of the last applied answer. committed <= length <= reserved.
struct SequenceState {
  uint32_t committed = 0;
  uint32_t length = 0;
  uint32_t reserved = 0;
  // Tokens given at begin that have no slots yet.
  uint32_t given_left = 0;
  // One table per layer group.
  std::vector<std::vector<BlockIndex>> tables;
};

// Not thread-safe. Pointers and spans from it are valid until the next Apply or Clear.
class BlockTables {
 public:
  struct Limits {
    uint32_t block_tokens = 16;
    uint32_t groups = 1;
    uint32_t max_sequence_tokens = 0;
    uint32_t block_count = 0;
  };

  BlockTables() = default;

  explicit BlockTables(const Limits& limits) : limits_(limits) {}

  // Applies the answer to `step`. INTERNAL if the answer cannot belong to the step; the tables are
  // then not to be used any more.
  absl::Status Apply(const Step& step, const StepAnswer& answer);

  // Null if there is no such sequence.
  const SequenceState* Find(SequenceHandle sequence) const;

  size_t size() const { return sequences_.size(); }

  const std::unordered_map<SequenceHandle, SequenceState>& sequences() const { return sequences_; }

  void Clear() { sequences_.clear(); }

 private:
  // What one Apply has yet to do.
  struct Pass;

  absl::Status ApplyOperation(const Operation& operation, uint32_t index, Pass& pass);
  absl::Status ApplyBegin(const BeginParams& begin, uint32_t index, Pass& pass);
  void ApplyAdvance(const AdvanceColumns& advance, uint32_t index, Pass& pass);
  absl::Status ApplyFork(const ForkParams& fork, uint32_t index, Pass& pass);
  void ApplyExtend(const ExtendParams& extend, OperationId id, const Pass& pass);
  absl::Status ApplyRun(const TableRun& run, Pass& pass);
  void CreateChild(SequenceHandle child, Pass& pass);
  void Trim(SequenceState& state) const;
  uint32_t TableSize(uint32_t slots) const;
  SequenceState* FindMutable(SequenceHandle sequence);

  Limits limits_;
  std::unordered_map<SequenceHandle, SequenceState> sequences_;
};

}  // namespace quire::client

#endif  // QUIRE_WORKER_CLIENT_BLOCK_TABLES_H_
