#include "tests/kernels/testing/attention_case.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/dtype.h"

namespace quire::kernels::testing {
namespace {

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t PrefixBlocks(const CaseParams& p) { return p.shared_prefix / p.block_tokens; }

}  // namespace

AttentionCase::AttentionCase(const CaseParams& params) : params_(params) {
  Random random(params.seed);
  PagedKvLayout layout = Layout({.dtype = params.dtype,
                                 .layers = params.layers,
                                 .kv_heads = params.kv_heads,
                                 .head_dim = params.head_dim,
                                 .block_tokens = params.block_tokens,
                                 .scale_kind = params.scale_kind,
                                 .preset = params.preset});
  int64_t blocks = params.extra_blocks + PrefixBlocks(params);
  for (const SequenceShape& s : params.sequences) {
    const int64_t used = CeilDiv(s.kv, params.block_tokens);
    columns_ = std::max(columns_, used);
    blocks += used - PrefixBlocks(params);
    lens_.push_back(s.kv);
    cu_q_lens_.push_back(static_cast<int32_t>(q_rows_));
    q_rows_ += s.q;
  }
  cu_q_lens_.push_back(static_cast<int32_t>(q_rows_));
  if (params.change_layout) {
    params.change_layout(layout, blocks);
    layout.id = LayoutId(layout);
  }
  const int64_t first_id = params.pool_blocks > 0 ? params.pool_blocks - blocks : 0;
  pool_ = std::make_unique<TestPool>(layout, first_id + blocks, /*poison=*/false);
  std::vector<int32_t> free = ShuffledIds(blocks, random);
  for (int32_t& id : free) {
    id += static_cast<int32_t>(first_id);
    pool_->PoisonBlock(id);
  }
  // The front is taken last.
  if (params.spare_block_zero) std::swap(free.front(), *std::find(free.begin(), free.end(), 0));
  FillTable(std::move(free), random);
  const int64_t heads = params.q_heads;
  q_values_.resize(static_cast<size_t>(q_rows_ * heads * params.head_dim));
  for (float& value : q_values_) value = random.Normal();
  EncodeQuery();
  for (int64_t h = 0; h < heads; ++h) {
    slopes_.push_back(std::exp2(-8.0f * static_cast<float>(h + 1) / static_cast<float>(heads)));
    sinks_.push_back(params.largest_sink * (0.5f + 0.14f * random.Normal()));
  }
  for (int64_t h = 0; h < params.kv_heads; ++h) {
    const float step = params.scale_kind == ScaleKind::kPerHead ? static_cast<float>(h) : 0.0f;
    k_scales_.push_back(0.5f / (1.0f + 0.5f * step));
    v_scales_.push_back(0.25f * (1.0f + step));
  }
}

bool AttentionCase::BlockIsVisible(const SequenceShape& shape, int64_t column) const {
  const AttentionMask& mask = params_.mask;
  const int64_t begin = column * params_.block_tokens;
  const int64_t end = std::min<int64_t>(begin + params_.block_tokens, shape.kv);
  const int64_t first = shape.kv - shape.q;
  const int64_t last = shape.kv - 1;
  if (shape.q == 0 || begin >= end || (mask.causal && begin > last)) return false;
  if (mask.window_left < 0 || begin < mask.keep_first) return true;
  return end - 1 >= first - mask.window_left;
}

void AttentionCase::FillTable(std::vector<int32_t> free, Random& random) {
  const int64_t stride = columns_ + params_.table_padding;
  ids_.assign(static_cast<size_t>(stride) * params_.sequences.size(), kNoBlock);
  const auto take = [&free] {
    const int32_t id = free.back();
    free.pop_back();
    return id;
  };
  std::vector<int32_t> prefix;
  for (int64_t c = 0; c < PrefixBlocks(params_); ++c) {
    prefix.push_back(take());
    for (int64_t t = 0; t < params_.block_tokens; ++t) {
      pool_->FillSlot(prefix.back(), t, params_.spread, random);
    }
  }
  for (size_t s = 0; s < params_.sequences.size(); ++s) {
    const SequenceShape& shape = params_.sequences[s];
    for (int64_t c = 0; c < CeilDiv(shape.kv, params_.block_tokens); ++c) {
      int32_t& id = ids_[s * static_cast<size_t>(stride) + static_cast<size_t>(c)];
      if (c < PrefixBlocks(params_)) {
        id = prefix[static_cast<size_t>(c)];
        continue;
      }
      if (!BlockIsVisible(shape, c)) continue;
      id = take();
      const int64_t slots =
          std::min<int64_t>(params_.block_tokens, shape.kv - c * params_.block_tokens);
      for (int64_t t = 0; t < slots; ++t) pool_->FillSlot(id, t, params_.spread, random);
    }
  }
}

void AttentionCase::EncodeQuery() {
  const int64_t dim = params_.head_dim;
  const int64_t row = params_.q_heads * dim + params_.q_padding;
  q_.resize(
      static_cast<size_t>(std::max<int64_t>(1, q_rows_ * row) * ElementBytes(params_.q_dtype)));
  Poison(params_.q_dtype, q_.data(), q_rows_ * row);
  for (int64_t r = 0; r < q_rows_; ++r) {
    for (int64_t i = 0; i < params_.q_heads * dim; ++i) {
      StoreElement(params_.q_dtype, q_.data(), r * row + i,
                   q_values_[static_cast<size_t>(r * params_.q_heads * dim + i)]);
    }
  }
}

BlockTableView AttentionCase::table() const {
  BlockTableView view;
  view.ids = ids_.data();
  view.row_stride = columns_ + params_.table_padding;
  view.rows = static_cast<int64_t>(params_.sequences.size());
  view.columns = columns_;
  view.lens = lens_.data();
  return view;
}

AttentionParams AttentionCase::params() {
  const int64_t dim = params_.head_dim;
  AttentionParams p;
  p.q = q_.data();
  p.q_dtype = params_.q_dtype;
  p.q_row_stride = params_.q_heads * dim + params_.q_padding;
  p.q_head_stride = dim;
  p.out = out_.data();
  p.out_dtype = params_.out_dtype;
  p.out_row_stride = params_.q_heads * dim + params_.out_padding;
  p.out_head_stride = dim;
  p.lse = lse_.data();
  p.lse_row_stride = params_.q_heads;
  p.q_rows = q_rows_;
  p.cu_q_lens = cu_q_lens_.data();
  p.q_heads = params_.q_heads;
  p.layer = params_.layer;
  p.scale = 1.0f / std::sqrt(static_cast<float>(dim));
  p.mask = params_.mask;
  p.softcap = params_.softcap;
  p.alibi_slopes = params_.alibi ? slopes_.data() : nullptr;
  p.sinks = params_.largest_sink > 0 ? sinks_.data() : nullptr;
  p.k_scale = k_scales_.data();
  p.v_scale = v_scales_.data();
  return p;
}

Status AttentionCase::RunPlan(Backend& backend, const AttentionPlan& plan) {
  std::vector<float> workspace(static_cast<size_t>(plan.workspace_bytes / 4));
  Poison(DType::kF32, workspace.data(), plan.workspace_bytes / 4);
  return backend.AppendAttention(pool_->view(), table(), params(), plan,
                                 std::as_writable_bytes(std::span<float>(workspace)));
}

void AttentionCase::PoisonOutputs() {
  const int64_t elements = q_rows_ * (params_.q_heads * params_.head_dim + params_.out_padding);
  out_.resize(
      static_cast<size_t>(std::max<int64_t>(1, elements) * ElementBytes(params_.out_dtype)));
  Poison(params_.out_dtype, out_.data(), elements);
  lse_.assign(static_cast<size_t>(std::max<int64_t>(1, q_rows_ * params_.q_heads)),
              std::numeric_limits<float>::quiet_NaN());
}

Status AttentionCase::Run(Backend& backend, const PlanOptions& options) {
  PoisonOutputs();
  Result<AttentionPlan> plan = backend.Plan(pool_->view(), table(), params(), options);
  return plan.ok() ? RunPlan(backend, *plan) : plan.status();
}

Status AttentionCase::RunCascade(Backend& backend, const PlanOptions& options) {
  PoisonOutputs();
  Result<AttentionPlan> plan =
      backend.PlanCascade(pool_->view(), table(), params_.shared_prefix, params(), options);
  return plan.ok() ? RunPlan(backend, *plan) : plan.status();
}

float AttentionCase::OutAt(int64_t row, int64_t head, int64_t i) const {
  const int64_t stride = params_.q_heads * params_.head_dim + params_.out_padding;
  return LoadElement(params_.out_dtype, out_.data(), row * stride + head * params_.head_dim + i);
}

float AttentionCase::LseAt(int64_t row, int64_t head) const {
  return lse_[static_cast<size_t>(row * params_.q_heads + head)];
}

}  // namespace quire::kernels::testing
