// One growing token stream of one worker.
#ifndef QUIRE_CACHE_SERVICE_ENGINE_SEQUENCE_H_
#define QUIRE_CACHE_SERVICE_ENGINE_SEQUENCE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "cache_service/engine/block.h"
#include "cache_service/engine/namespace_key.h"
#include "cache_service/engine/retention.h"
#include "cache_service/engine/types.h"

namespace quire {

struct Sequence;

// Promise of blocks to a sequence and its forks (P10).
struct Claim {
  WorkerSlot worker = kNoWorker;
  uint32_t reserve_tokens = 0;
  // Blocks that one sequence of reserve_tokens needs.
  uint64_t blocks_per_sequence = 0;
  // Forks that the claim still covers.
  uint32_t forks_left = 0;
  // Copies that sharers of a partial tail will need.
  uint64_t copies_due = 0;
  std::vector<Sequence*> members;
  // Blocks that its sequences may still take.
  uint64_t wanted = 0;
  // Blocks promised and not yet taken: all that are wanted, unless some could not be had.
  uint64_t remaining = 0;
};

// What an advance reads and writes that neither seals a block nor takes one: one cache line, beside
// the place of its token.
struct DecodeState {
  SequenceHandle handle = 0;
  // Step that touched it last, and its length before that step: tokens below entered earlier.
  StepNumber touched_step = 0;
  uint32_t length_before_step = 0;

  uint32_t committed = 0;
  uint32_t length = 0;
  uint32_t reserved = 0;
  // Tokens named by the begin; those past length have no slots yet.
  uint32_t given = 0;

  WorkerSlot worker = kNoWorker;
  // False: what it commits from now on stays private.
  bool publishes = true;

  // Token ids from position token_base on; those before are in the tree.
  std::vector<TokenId> tokens;
};

static_assert(sizeof(DecodeState) == 64, "one cache line per sequence");

// Of a prompt and its forks; null: none.
using SharedDigests = std::shared_ptr<const std::vector<DigestRange>>;

// committed <= length <= reserved; every table has ceil(max(length, reserved) / block_tokens)
// entries.
struct alignas(64) Sequence : DecodeState {
  // Then what an advance needs to seal a block or to take one.

  uint32_t token_base = 0;
  // Leading blocks that are sealed and in the tree.
  uint32_t sealed = 0;
  // Node of the last sealed block, or the root.
  NodeId node = kNoNode;
  NodeId root = kNoNode;
  // Order of the begins of all sequences; forks continue the parent's.
  uint64_t serial = 0;

  // By group; kNoBlock: left the window. The table of the first group is here.
  absl::InlinedVector<std::vector<BlockId>, 1> tables;

  std::shared_ptr<Claim> claim;
  SharedDigests digests;
  std::vector<RetentionRange> retention;

  // By group: entries before this one have left.
  std::vector<uint32_t> window_start;
  NamespaceParts namespace_parts;

  // Asks the processor for what every advance needs, then for the place of the next token, then
  // for what sealing and taking blocks need.
  void Prefetch() const { __builtin_prefetch(this, 1); }

  void PrefetchTokens() const { __builtin_prefetch(tokens.data() + tokens.size(), 1); }

  void PrefetchRest() const {
    __builtin_prefetch(&token_base, 1);
    __builtin_prefetch(reinterpret_cast<const char*>(&token_base) + 64);
  }

  uint32_t SealerId() const { return static_cast<uint32_t>(serial); }
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_ENGINE_SEQUENCE_H_
