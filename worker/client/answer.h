// The server's answer to one step, as plain values.
#ifndef QUIRE_WORKER_CLIENT_ANSWER_H_
#define QUIRE_WORKER_CLIENT_ANSWER_H_

#include <cstdint>
#include <vector>

#include "worker/client/step.h"
#include "worker/client/types.h"

namespace quire::client {

// Consecutive entries of one block table.
struct TableRun {
  SequenceHandle sequence = 0;
  uint32_t group = 0;
  uint32_t first_index = 0;
  std::vector<BlockIndex> blocks{};
};

// Copy the first tokens of a block.
struct CopyOrder {
  uint32_t group = 0;
  BlockIndex source = kNoBlock;
  BlockIndex destination = kNoBlock;
  uint32_t tokens = 0;
};

struct BeginResult {
  uint32_t operation = 0;
  uint32_t reused_tokens = 0;
  uint32_t copied_tokens = 0;
  uint32_t length = 0;
};

struct ForkResult {
  uint32_t operation = 0;
  uint32_t length = 0;
};

// Part of an advance that failed; the parts before it stand. Numbers equal quire.v1.AdvancePart.
enum class AdvancePart : uint8_t { kNone = 0, kCommit = 1, kEnter = 2, kAhead = 3 };

struct OperationFailure {
  OperationId id{};
  AdvancePart part = AdvancePart::kNone;
  // Slots the sequence holds now, if it exists.
  uint32_t reserved = 0;
  Error error{};
};

struct SequenceNotice {
  SequenceHandle sequence = 0;
  Error error{};
};

struct PoolCounts {
  uint32_t free = 0;
  uint32_t evictable = 0;
  uint32_t fenced = 0;
};

struct StepAnswer {
  StepNumber step = 0;
  std::vector<TableRun> table{};
  std::vector<CopyOrder> copies{};
  std::vector<BeginResult> begins{};
  std::vector<ForkResult> forks{};
  std::vector<OperationFailure> failures{};
  std::vector<SequenceNotice> notices{};
  PoolCounts pool{};

  // Null if the operation succeeded.
  const OperationFailure* FailureOf(OperationId id) const {
    for (const OperationFailure& failure : failures) {
      if (failure.id == id) return &failure;
    }
    return nullptr;
  }

  // Null if the operation is no begin or failed.
  const BeginResult* BeginOf(OperationId id) const {
    for (const BeginResult& begin : begins) {
      if (begin.operation == id.operation) return &begin;
    }
    return nullptr;
  }
};

}  // namespace quire::client

#endif  // QUIRE_WORKER_CLIENT_ANSWER_H_
