// Splitting attention into work: which piece of which sequence a worker handles.
//
// A plan is a pure function of lengths, masks, head counts and options: same input, same plan. It
// holds no pointers and is the same for every layer of a group, so it is made once per step.
// Devices and threads take the items of one part after another; items are for all KV heads.
#ifndef QUIRE_KERNELS_PLAN_H_
#define QUIRE_KERNELS_PLAN_H_

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/status.h"

namespace quire::kernels {

constexpr int32_t kPlanTileTokens = 64;

// Which keys a query sees. Positions are absolute in the sequence.
struct AttentionMask {
  bool causal = true;        // keys after the query are hidden
  int32_t window_left = -1;  // window - 1: keys further back are hidden; -1: no window
  int32_t keep_first = 0;    // the first tokens stay visible in spite of the window
};

// Queries that read one run of keys: a sequence of the table, or a shared prefix.
struct PlanSequence {
  int64_t q_row = 0;           // row of its first query token in q
  int64_t q_tokens = 0;        // 0: nothing to do
  int64_t first_position = 0;  // of the first query token; negative if there are more than keys
  int64_t kv_begin = 0;        // keys kv_begin..kv_end - 1 exist for it
  int64_t kv_end = 0;
};

struct PlanOptions {
  // Workers that run at once: threads, or CTAs / kv_heads. 0: Backend::Plan's own parallelism.
  int32_t parts = 0;
  int32_t q_tile_rows = 64;    // query rows (tokens * group) an item takes at most, but >= 1 token
  int64_t fixed_split = 0;     // > 0: cut keys at multiples of this whatever the batch is
  int32_t overhead_tiles = 1;  // fixed cost of a piece, in tiles of 64 tokens
  int32_t min_piece_per_row = 64;  // keys a piece needs per query row to be worth its partial state
};

struct PlanItem {
  int32_t sequence = 0;  // index into the PlanSequences
  int32_t q_tokens = 0;  // > 0
  int64_t q_row = 0;     // row of its first query token in q
  int64_t kv_begin = 0;  // kv_begin < kv_end
  int64_t kv_end = 0;
  int64_t partial_row = -1;  // first row in the workspace; -1: the item writes the output itself
};

// Query tokens whose output is the merge of some partial states; none at all: zeros.
struct PlanMerge {
  int64_t q_row = 0;
  int32_t q_tokens = 0;
  int32_t first_part = 0;  // merge_rows[first_part .. last_part)
  int32_t last_part = 0;
};

// Rows of the workspace hold fp32 out [q_heads][head_dim] for all rows, then fp32 LSE [q_heads].
struct AttentionPlan {
  std::vector<PlanItem> items;      // of part 0, then of part 1, ...
  std::vector<int32_t> part_begin;  // parts + 1 entries into items
  std::vector<PlanMerge> merges;
  std::vector<int64_t> merge_rows;  // first workspace row of each partial state
  int64_t partial_rows = 0;
  int64_t workspace_bytes = 0;
  int64_t q_rows = 0;         // rows of q it was made for
  int64_t shared_prefix = 0;  // > 0: cascade; its items have sequence == number of tables
  int32_t sequences = 0;      // tables it was made for
  uint64_t inputs = 0;        // PlanInputs it was made from
};

struct PlanShape {
  int32_t q_heads = 0;
  int32_t kv_heads = 0;
  int32_t head_dim = 0;
  int32_t block_tokens = 0;
};

// Hash of what a plan depends on, to refuse a plan of an earlier step.
uint64_t PlanInputs(std::span<const PlanSequence> sequences, const PlanShape& shape,
                    const AttentionMask& mask);

// Keys begin..end - 1; empty if they meet.
struct KeyRange {
  int64_t begin = 0;
  int64_t end = 0;

  bool empty() const { return begin >= end; }
};

// What queries at positions first..last of `sequence` see together: the kept first tokens, and the
// rest from the block where the window of `first` begins. Disjoint and in order.
struct VisibleKeys {
  KeyRange kept;
  KeyRange rest;
};

VisibleKeys FindVisibleKeys(const PlanSequence& sequence, const AttentionMask& mask, int64_t first,
                            int64_t last, int32_t block_tokens);

// Every visible (query, key) is in exactly one item. INVALID_ARGUMENT names a bad option.
Result<AttentionPlan> MakePlan(std::span<const PlanSequence> sequences, const PlanShape& shape,
                               const AttentionMask& mask, const PlanOptions& options);

// As MakePlan for sequences whose first `prefix` keys are the same blocks, read once for all
// queries. Every token's output is then a merge. The caller has checked that no window cuts in.
Result<AttentionPlan> MakeCascadePlan(std::span<const PlanSequence> sequences, int64_t prefix,
                                      const PlanShape& shape, const AttentionMask& mask,
                                      const PlanOptions& options);

// True if reading the prefix once saves more than twice the traffic of the extra partial states.
bool CascadePays(int64_t batch, int64_t q_tokens, int64_t prefix, int32_t group,
                 int64_t element_bytes);

}  // namespace quire::kernels

#endif  // QUIRE_KERNELS_PLAN_H_
