// Attention of one plan item on one KV head: the unit of work of the CPU backend.
#ifndef QUIRE_KERNELS_CPU_ATTENTION_H_
#define QUIRE_KERNELS_CPU_ATTENTION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/backend.h"

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

// Keys begin..end - 1, and those kept at the start if below end, are visible to a query row.
struct RowBounds {
  int64_t begin;
  int64_t end;
};

// A thread's working memory, 64-byte aligned, for items of up to `rows` query rows.
class AttentionScratch {
 public:
  void Reserve(int64_t rows, int64_t head_dim, int64_t merge_states);

  float* q = nullptr;       // [rows][head_dim]
  float* out = nullptr;     // [rows][head_dim], not yet divided by sum
  float* scores = nullptr;  // [rows][64], then probabilities
  float* max = nullptr;     // [rows], natural units
  float* sum = nullptr;     // [rows]
  float* decay = nullptr;   // [rows], what the last tile does to earlier sums
  float* k_tile = nullptr;  // [head_dim][64], only for many rows
  float* v_tile = nullptr;  // [64][head_dim], only for many rows
  std::vector<RowBounds> bounds;
  std::vector<const float*> merge_outs;
  std::vector<float> merge_lses;

 private:
  struct Free {
    void operator()(float* p) const;
  };

  int64_t floats_ = 0;
  std::unique_ptr<float, Free> memory_;
};

// Rows are padded to a multiple of this.
constexpr int64_t kRowPad = 8;

// Loads the item's queries, walks its keys, and stores the output or the partial state.
// Uses the best instruction set that Highway finds or that a test has chosen.
void AttendHead(const AttentionCall& call, const PlanItem& item, int32_t kv_head,
                AttentionScratch& scratch);

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
