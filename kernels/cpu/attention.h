// Attention of one plan item on some KV heads: the unit of work of the CPU backend.
#ifndef QUIRE_KERNELS_CPU_ATTENTION_H_
#define QUIRE_KERNELS_CPU_ATTENTION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/tile.h"

namespace quire::kernels::cpu {

// Everything a task reads; shared by all threads of a call.
struct AttentionCall {
  const KvPoolView& pool;
  const BlockTableView& table;
  const AttentionParams& params;
  const AttentionPlan& plan;
  float* partial_out = nullptr;        // [partial_rows][q_heads][head_dim]
  float* partial_lse = nullptr;        // [partial_rows][q_heads]
  const int64_t* positions = nullptr;  // of every query token

  int32_t group() const { return params.q_heads / pool.layout.kv_heads; }
};

// From this many query rows on, making a tile of keys fp32 once is cheaper than in every row block.
// One-byte types cost more to convert.
inline int64_t ManyRows(DType stored) { return ElementBytes(stored) == 1 ? 24 : 48; }

// Keys begin..end - 1, and those kept at the start if below end, are visible to a query row.
struct RowBounds {
  int64_t begin;
  int64_t end;
};

// What is kept of one KV head while its keys are walked; rows are (query token, head of group).
struct HeadState {
  float* q = nullptr;    // [rows][head_dim], or three bf16 terms [3][rows][head_dim]
  float* out = nullptr;  // [rows][head_dim], not yet divided by sum
  // [rows][kSumLanes], of each block of rows in its first lanes (softmax-inl.h); natural units.
  float* max = nullptr;
  float* sums = nullptr;
};

// Rows are padded to a multiple of this.
constexpr int64_t kRowPad = 8;
// Floats that hold a row's maximum or sum of probabilities, at most a vector.
constexpr int64_t kSumLanes = 16;
// Floats that hold an element of a query.
constexpr int64_t kQueryWidth = 2;

// A thread's working memory, 64-byte aligned.
class AttentionScratch {
 public:
  struct Sizes {
    int64_t heads = 1;  // KV heads of a task
    int64_t rows = 1;   // query rows of a task on one KV head
    int64_t head_dim = 0;
    int64_t merge_states = 0;
    int64_t block_tokens = 1;
  };

  void Reserve(const Sizes& sizes);

  // Index of the KV head inside the task.
  HeadState Head(int64_t index) const;

  float* scores = nullptr;        // [rows][64], for one head at a time
  float* weights = nullptr;       // [rows][64], probabilities
  float* k_tile = nullptr;        // [head_dim][64], only for many rows
  float* v_tile = nullptr;        // [64][head_dim], only for many rows
  std::vector<RowBounds> bounds;  // [rows], equal for all heads
  RowBounds common_bounds{};      // keys that all rows see
  PrefetchCursor ahead;
  std::vector<const float*> merge_outs;
  std::vector<float> merge_lses;

 private:
  struct Free {
    void operator()(float* p) const;
  };

  int64_t HeadFloats() const;

  int64_t rows_ = 0;  // padded
  int64_t head_dim_ = 0;
  int64_t floats_ = 0;
  float* heads_ = nullptr;
  std::unique_ptr<float, Free> memory_;
};

// An item on KV heads head_begin..head_begin + heads - 1.
struct AttentionTask {
  const PlanItem* item = nullptr;
  int32_t head_begin = 0;
  int32_t heads = 0;
};

// Items as tasks for `threads` threads: of few query rows on many heads at once, so that blocks are
// read in address order, of many query rows on one head.
std::vector<AttentionTask> MakeTasks(const AttentionCall& call, int threads);

// Loads the item's queries, walks its keys, and stores the output or the partial state.
// Uses the best instruction set that Highway finds or that a test has chosen.
void Attend(const AttentionCall& call, const AttentionTask& task, AttentionScratch& scratch);

// One (query token, head): what `states` (lse, out) pairs make together, with the sink joined once.
struct MergeCell {
  const float* const* outs = nullptr;
  const float* lses = nullptr;
  int64_t states = 0;
  int64_t head_dim = 0;
  const float* sink = nullptr;  // one logit or null
  void* out = nullptr;
  DType out_dtype = DType::kF32;
  float* lse = nullptr;  // or null
};

void Merge(const MergeCell& cell);

// Merge `index` of the plan, all heads.
void MergePlanned(const AttentionCall& call, int64_t index, AttentionScratch& scratch);

}  // namespace quire::kernels::cpu

#endif  // QUIRE_KERNELS_CPU_ATTENTION_H_
