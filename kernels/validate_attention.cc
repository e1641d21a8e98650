#include <cmath>
#include <string>

#include "kernels/check_tensor.h"
#include "kernels/validate.h"

namespace quire::kernels {
namespace {

using std::to_string;

TensorArgument QueryOf(const KvPoolView& pool, const AttentionParams& p) {
  return {.name = "params.q",
          .data = p.q,
          .dtype = p.q_dtype,
          .rows = p.q_rows,
          .row_stride = p.q_row_stride,
          .heads = p.q_heads,
          .head_stride = p.q_head_stride,
          .run = pool.layout.head_dim};
}

TensorArgument OutputOf(const KvPoolView& pool, const AttentionParams& p) {
  return {.name = "params.out",
          .data = p.out,
          .dtype = p.out_dtype,
          .rows = p.q_rows,
          .row_stride = p.out_row_stride,
          .heads = p.q_heads,
          .head_stride = p.out_head_stride,
          .run = pool.layout.head_dim,
          .written = true};
}

TensorArgument LseOf(const AttentionParams& p) {
  return {.name = "params.lse",
          .data = p.lse,
          .rows = p.lse != nullptr ? p.q_rows : 0,
          .row_stride = p.lse_row_stride,
          .heads = p.q_heads,
          .head_stride = p.lse_head_stride,
          .run = 1,
          .written = true};
}

Status CheckTensors(const KvPoolView& pool, const AttentionParams& p) {
  if (Status s = CheckFloatType("params.q_dtype", p.q_dtype); !s.ok()) return s;
  if (Status s = CheckFloatType("params.out_dtype", p.out_dtype); !s.ok()) return s;
  if (p.q_head_stride < pool.layout.head_dim) {
    return Status::Invalid("params.q_head_stride",
                           "q_head_stride is " + to_string(p.q_head_stride) + " for head_dim " +
                               to_string(pool.layout.head_dim));
  }
  if (Status s = CheckTensor(QueryOf(pool, p)); !s.ok()) return s;
  if (Status s = CheckTensor(OutputOf(pool, p)); !s.ok()) return s;
  return CheckTensor(LseOf(p));
}

Status CheckScores(const KvPoolView& pool, const AttentionParams& p) {
  if (p.layer < 0 || p.layer >= pool.layout.layers) {
    return Status::OutOfRange(
        "params.layer",
        "layer is " + to_string(p.layer) + ", the group has " + to_string(pool.layout.layers));
  }
  if (!std::isfinite(p.scale)) return Status::Invalid("params.scale", "scale is not finite");
  if (!std::isfinite(p.softcap) || p.softcap < 0) {
    return Status::Invalid("params.softcap", "softcap must be finite and not negative");
  }
  if (Status s = CheckSlopes("params.alibi_slopes", p.alibi_slopes, p.q_heads); !s.ok()) return s;
  if (Status s = CheckSinks("params.sinks", p.sinks, p.q_heads); !s.ok()) return s;
  if (Status s = CheckScales("params.k_scale", p.k_scale, pool.layout); !s.ok()) return s;
  return CheckScales("params.v_scale", p.v_scale, pool.layout);
}

Status CheckMergeShape(const MergeParams& p) {
  const auto out_of_range = [](const char* argument, int64_t value, int64_t least) {
    return Status::OutOfRange(argument,
                              to_string(value) + ", must be " + to_string(least) + "..2^31-1");
  };
  if (p.states < 0 || p.states > INT32_MAX) return out_of_range("params.states", p.states, 0);
  if (p.rows < 0 || p.rows > INT32_MAX) return out_of_range("params.rows", p.rows, 0);
  if (p.heads < 1) return out_of_range("params.heads", p.heads, 1);
  if (p.head_dim < 1) return out_of_range("params.head_dim", p.head_dim, 1);
  int64_t bytes = int64_t{4} * p.head_dim;
  if (__builtin_mul_overflow(bytes, int64_t{p.heads} * p.rows, &bytes) ||
      __builtin_mul_overflow(bytes, p.states + 1, &bytes)) {
    return Status::OutOfRange(
        "params.states", to_string(p.states) + " states of " + to_string(p.rows) + " rows and " +
                             to_string(p.heads) + " heads end past all memory");
  }
  return Status::Ok();
}

// A dense array of `rows` times `run` elements.
Status CheckArray(const char* name, const void* data, DType dtype, int64_t rows, int64_t run) {
  return CheckTensor({.name = name,
                      .data = data,
                      .dtype = dtype,
                      .rows = rows,
                      .row_stride = run,
                      .head_stride = run,
                      .run = run});
}

}  // namespace

Status ValidateAttention(const KvPoolView& pool, const BlockTableView& table,
                         const AttentionParams& params) {
  if (Status s = ValidateTables(pool, table, params); !s.ok()) return s;
  if (Status s = CheckTensors(pool, params); !s.ok()) return s;
  return CheckScores(pool, params);
}

Status ValidateMerge(const MergeParams& p) {
  if (Status s = CheckMergeShape(p); !s.ok()) return s;
  if (Status s = CheckFloatType("params.out_dtype", p.out_dtype); !s.ok()) return s;
  const int64_t states = p.states * p.rows;
  const int64_t row = int64_t{p.heads} * p.head_dim;
  if (Status s = CheckArray("params.out", p.out, p.out_dtype, p.rows, row); !s.ok()) return s;
  if (Status s = CheckArray("params.partial_out", p.partial_out, DType::kF32, states, row);
      !s.ok()) {
    return s;
  }
  if (Status s = CheckArray("params.partial_lse", p.partial_lse, DType::kF32, states, p.heads);
      !s.ok()) {
    return s;
  }
  if (p.lse != nullptr) {
    if (Status s = CheckArray("params.lse", p.lse, DType::kF32, p.rows, p.heads); !s.ok()) return s;
  }
  return CheckSinks("params.sinks", p.sinks, p.heads);
}

}  // namespace quire::kernels
