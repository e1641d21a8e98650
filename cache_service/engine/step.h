// Steps as the engine sees them: plain structs mirroring quire.v1.StepBatch and StepAnswer.
//
// Spans in the parameters point into memory of the caller and are only read during the call.
#ifndef QUIRE_CACHE_SERVICE_ENGINE_STEP_H_
#define QUIRE_CACHE_SERVICE_ENGINE_STEP_H_

#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "cache_service/base/error.h"
#include "cache_service/engine/namespace_key.h"
#include "cache_service/engine/retention.h"
#include "cache_service/engine/types.h"

namespace quire {

// Looks up, holds and allocates in one atomic operation (P4).
struct BeginOp {
  SequenceHandle sequence = 0;
  std::span<const TokenId> tokens{};
  NamespaceParts namespace_parts{};
  // Tokens that get slots beyond the hit; absent: all.
  std::optional<uint32_t> allocate_tokens{};
  uint32_t recompute_tail = 0;
  bool skip_cache_read = false;
  std::vector<RetentionRange> retention{};
  std::vector<DigestRange> digests{};
  // Claim: total length whose growth cannot fail, for this many sequences (0 means 1).
  uint32_t reserve_tokens = 0;
  uint32_t reserve_sequences = 0;
};

// Columns of equal length; token_counts may be empty (one token each), aheads may be empty
// (`ahead` for all).
struct AdvanceOp {
  std::span<const SequenceHandle> sequences{};
  std::span<const uint32_t> start_lengths{};
  std::span<const TokenId> tokens{};
  std::span<const uint32_t> token_counts{};
  uint32_t ahead = 0;
  std::span<const uint32_t> aheads{};
};

// Enters given tokens that have no slots yet, then reserves up to `slots` in total.
struct ExtendOp {
  SequenceHandle sequence = 0;
  uint32_t start_length = 0;
  uint32_t slots = 0;
};

struct CommitOp {
  SequenceHandle sequence = 0;
  uint32_t start_length = 0;
  uint32_t committed_length = 0;
};

struct ForkOp {
  SequenceHandle sequence = 0;
  uint32_t start_length = 0;
  std::span<const SequenceHandle> children{};
};

struct TruncateOp {
  SequenceHandle sequence = 0;
  uint32_t start_length = 0;
  uint32_t length = 0;
};

struct FinishOp {
  SequenceHandle sequence = 0;
  bool drop = false;
  std::vector<RetentionRange> retention{};
};

using Operation =
    std::variant<BeginOp, AdvanceOp, ExtendOp, CommitOp, ForkOp, TruncateOp, FinishOp>;

struct StepParams {
  LeaseId lease{};
  Epoch epoch = 0;
  StepNumber step = 0;
  StepNumber applied_step = 0;
  StepNumber completed_step = 0;
  bool all_or_nothing = false;
  std::span<const Operation> operations{};
  CallerTenant caller{};
};

// Consecutive entries of one block table: StepResult::blocks[first_block, first_block + count).
struct TableRun {
  SequenceHandle sequence = 0;
  uint32_t group = 0;
  uint32_t first_index = 0;
  uint32_t first_block = 0;
  uint32_t count = 0;

  friend bool operator==(const TableRun&, const TableRun&) = default;
};

// Copy the first `tokens` tokens of `source` to `destination`.
struct CopyOrder {
  uint32_t group = 0;
  BlockId source = kNoBlock;
  BlockId destination = kNoBlock;
  uint32_t tokens = 0;

  friend bool operator==(const CopyOrder&, const CopyOrder&) = default;
};

struct BeginResult {
  uint32_t operation = 0;
  uint32_t reused_tokens = 0;
  uint32_t copied_tokens = 0;
  uint32_t length = 0;

  friend bool operator==(const BeginResult&, const BeginResult&) = default;
};

struct ForkResult {
  uint32_t operation = 0;
  uint32_t length = 0;

  friend bool operator==(const ForkResult&, const ForkResult&) = default;
};

// Numbers equal quire.v1.AdvancePart.
enum class AdvancePart : uint8_t { kNone = 0, kCommit = 1, kEnter = 2, kAhead = 3 };

struct OperationFailure {
  uint32_t operation = 0;
  uint32_t entry = 0;
  AdvancePart part = AdvancePart::kNone;
  // Slots that the sequence holds now, 0 if it does not exist.
  uint32_t reserved = 0;
  Error error;

  friend bool operator==(const OperationFailure&, const OperationFailure&) = default;
};

struct SequenceNotice {
  SequenceHandle sequence = 0;
  Error error;

  friend bool operator==(const SequenceNotice&, const SequenceNotice&) = default;
};

// As the caller sees them: evictable and free include blocks that only its own releases fence.
struct PoolCounts {
  uint32_t free = 0;
  uint32_t evictable = 0;
  uint32_t fenced = 0;

  friend bool operator==(const PoolCounts&, const PoolCounts&) = default;
};

// What changed. Tables follow from operations and runs together: a begin's runs list its whole
// table; a fork's child starts with the entries that the parent has at that place in the list, up
// to the block of the child's last token, and its first run, which names that block, marks the
// place; truncate shrinks the table to ceil(length / block_tokens) entries and finish drops it
// without a run; a window exit is an entry kNoBlock.
struct StepResult {
  StepNumber step = 0;
  // In the order in which they happened.
  std::vector<TableRun> runs;
  std::vector<BlockId> blocks;
  std::vector<CopyOrder> copies;
  std::vector<BeginResult> begins;
  std::vector<ForkResult> forks;
  std::vector<OperationFailure> failures;
  std::vector<SequenceNotice> notices;
  PoolCounts pool;

  friend bool operator==(const StepResult&, const StepResult&) = default;
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_ENGINE_STEP_H_
