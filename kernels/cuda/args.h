// Arguments of the attention kernels: plain structs that cross to the device by value.
#ifndef QUIRE_KERNELS_CUDA_ARGS_H_
#define QUIRE_KERNELS_CUDA_ARGS_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/kv_layout.h"

namespace quire::kernels::device {

// A PlanItem as a kernel reads it.
struct AttentionItem {
  int32_t table_row;
  int32_t q_tokens;
  int32_t kv_begin;
  int32_t kv_end;
  int64_t q_row;
  int64_t partial_row;  // -1: writes the output
};

// Strided rows of a tensor, in elements.
struct RowTensor {
  std::byte* data;
  int64_t row_stride;
  int64_t head_stride;
  DType dtype;
};

struct AttentionArgs {
  const std::byte* pool;
  PagedKvLayout layout;
  const int32_t* ids;
  int64_t ids_stride;
  const AttentionItem* items;
  const int32_t* part_begin;  // items of CTA group p: part_begin[p] .. part_begin[p + 1]
  const int32_t* positions;   // of each query token in its sequence
  RowTensor q;
  RowTensor out;
  float* lse;  // null: not wanted
  int64_t lse_row_stride;
  int64_t lse_head_stride;
  float* partial_out;  // [row][q_head][dim]
  float* partial_lse;  // [row][q_head]
  int32_t q_heads;
  int32_t group;
  int32_t layer;
  int32_t window_left;
  int32_t keep_first;
  bool causal;
  float scale;
  float softcap;
  const float* alibi_slopes;  // per query head or null
  const float* sinks;         // per query head or null
  const float* k_scale;       // per KV head
  const float* v_scale;
};

// One output row that is the merge of partial states.
struct MergeRow {
  int64_t out_row;
  int32_t first_part;
  int32_t last_part;
  int32_t token;  // inside each part
};

struct MergeArgs {
  const MergeRow* rows;
  const int64_t* part_rows;
  int64_t cells;  // rows * heads
  const float* partial_out;
  const float* partial_lse;
  RowTensor out;
  float* lse;
  int64_t lse_row_stride;
  int64_t lse_head_stride;
  const float* sinks;
  int32_t heads;
  int32_t head_dim;
};

static_assert(std::is_trivially_copyable_v<AttentionArgs>);
static_assert(std::is_trivially_copyable_v<MergeArgs>);

}  // namespace quire::kernels::device

#endif  // QUIRE_KERNELS_CUDA_ARGS_H_
