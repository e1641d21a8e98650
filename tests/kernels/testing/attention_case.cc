#include "tests/kernels/testing/attention_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "kernels/dtype.h"

namespace quire::kernels::testing {
namespace {

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t PrefixBlocks(const CaseParams& p) { return p.shared_prefix / p.block_tokens; }

// What is computed of a sequence with very many queries.
constexpr int64_t kSlices = 8;
constexpr int64_t kSliceRows = 8;

// What sanitizers make too slow to repeat on every target: they check each element that the scalar
// target and the emulator touch.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int64_t kLargestRepeated = int64_t{1} << 24;
#else
constexpr int64_t kLargestRepeated = std::numeric_limits<int64_t>::max();
#endif

double OutputRounding(DType out) {
  if (out == DType::kBF16) return 0x1p-9;
  return out == DType::kF16 ? 0x1p-11 : 0.0;
}

}  // namespace

Bounds BoundsFor(DType stored, DType out) {
  switch (stored) {
    case DType::kF32:
      return {1e-5 + OutputRounding(out), 1e-5};
    case DType::kF16:
      return {out == DType::kBF16 ? 6e-3 : 2e-3, 1e-4};
    case DType::kBF16:
      return {6e-3, 1e-4};
    case DType::kE4M3:
    case DType::kI8:
      break;
  }
  return {4e-3 + OutputRounding(out), 1e-4};
}

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

void AttentionCase::ComputeReference(int64_t sample) {
  const int64_t count = static_cast<int64_t>(params_.sequences.size());
  want_out_.assign(static_cast<size_t>(q_rows_ * params_.q_heads * params_.head_dim), 0.0f);
  want_lse_.assign(static_cast<size_t>(q_rows_ * params_.q_heads), 0.0f);
  wanted_.assign(static_cast<size_t>(q_rows_), false);
  const int64_t step = sample > 1 && count > sample ? (count - 2) / (sample - 1) + 1 : 1;
  for (int64_t s = 0; s < count; ++s) {
    if (s % step != 0 && s != count - 1) continue;
    const int64_t rows = params_.sequences[static_cast<size_t>(s)].q;
    // A slice of causal rows is what a shorter sequence would compute.
    if (!params_.mask.causal || rows <= kSlices * kSliceRows) {
      if (rows > 0) ComputeSlice(s, 0, rows);
      continue;
    }
    for (int64_t i = 0; i < kSlices; ++i) {
      ComputeSlice(s, i * (rows - kSliceRows) / (kSlices - 1), kSliceRows);
    }
  }
}

void AttentionCase::ComputeSlice(int64_t sequence, int64_t begin, int64_t rows) {
  const auto backend = MakeReference();
  const SequenceShape& shape = params_.sequences[static_cast<size_t>(sequence)];
  const int32_t len = static_cast<int32_t>(shape.kv - shape.q + begin + rows);
  const int64_t first_row = cu_q_lens_[static_cast<size_t>(sequence)] + begin;
  const int64_t row = params_.q_heads * params_.head_dim;
  for (int64_t r = 0; r < rows; ++r) {
    wanted_[static_cast<size_t>(first_row + r)] = true;
    for (int64_t h = 0; h < params_.q_heads; ++h) {
      want_lse_[static_cast<size_t>((first_row + r) * params_.q_heads + h)] =
          -std::numeric_limits<float>::infinity();
    }
  }
  if (len < 0) return;  // every query stands before key 0
  BlockTableView one = table();
  one.ids += sequence * one.row_stride;
  one.lens = &len;
  one.rows = 1;
  const int32_t cu[2] = {0, static_cast<int32_t>(rows)};
  AttentionParams p = params();
  p.q = q_.data() + first_row * p.q_row_stride * ElementBytes(p.q_dtype);
  p.out = want_out_.data() + first_row * row;
  p.out_dtype = DType::kF32;
  p.out_row_stride = row;
  p.lse = want_lse_.data() + first_row * params_.q_heads;
  p.q_rows = rows;
  p.cu_q_lens = cu;
  Result<AttentionPlan> plan = backend->Plan(pool_->view(), one, p, {});
  ASSERT_TRUE(plan.ok()) << plan.status().argument() << ": " << plan.status().message();
  std::vector<float> space(static_cast<size_t>(plan->workspace_bytes / 4));
  const Status status = backend->DecodeAttention(pool_->view(), one, p, *plan,
                                                 std::as_writable_bytes(std::span<float>(space)));
  ASSERT_TRUE(status.ok()) << status.message();
}

std::string AttentionCase::CompareRow(int64_t row, int64_t head) const {
  const Bounds bounds = BoundsFor(params_.dtype, params_.out_dtype);
  const int64_t dim = params_.head_dim;
  const float* want = want_out_.data() + (row * params_.q_heads + head) * dim;
  double error = 0;
  double norm = 0;
  for (int64_t i = 0; i < dim; ++i) {
    const double difference = double{OutAt(row, head, i)} - double{want[i]};
    error += difference * difference;
    norm += double{want[i]} * double{want[i]};
  }
  const double want_lse = double{want_lse_[static_cast<size_t>(row * params_.q_heads + head)]};
  const double lse = double{LseAt(row, head)};
  // A float near the LSE is no closer than its spacing.
  const double lse_bound = bounds.lse + std::fabs(want_lse) * 0x1p-22;
  const bool same_empty = std::isinf(want_lse) && lse == want_lse;
  const bool row_fits = std::sqrt(error) <= bounds.row * std::sqrt(norm);
  if (row_fits && (same_empty || std::fabs(lse - want_lse) <= lse_bound)) return "";
  return "row " + std::to_string(row) + " head " + std::to_string(head) + ": relative error " +
         std::to_string(std::sqrt(error / norm)) + " of norm " + std::to_string(std::sqrt(norm)) +
         ", bound " + std::to_string(bounds.row) + "; lse " + std::to_string(lse) + " for " +
         std::to_string(want_lse);
}

std::string AttentionCase::ComparePadding() const {
  const int64_t row = params_.q_heads * params_.head_dim;
  for (int64_t r = 0; r < q_rows_; ++r) {
    for (int64_t i = 0; i < params_.out_padding; ++i) {
      const int64_t at = r * (row + params_.out_padding) + row + i;
      if (!IsPoison(params_.out_dtype, out_.data(), at)) {
        return "padding after row " + std::to_string(r) + " was written";
      }
    }
  }
  return "";
}

std::string AttentionCase::Compare() const {
  for (int64_t row = 0; row < q_rows_; ++row) {
    if (!wanted_[static_cast<size_t>(row)]) continue;
    for (int64_t head = 0; head < params_.q_heads; ++head) {
      std::string difference = CompareRow(row, head);
      if (!difference.empty()) return difference;
    }
  }
  return ComparePadding();
}

std::vector<PlanOptions> AttentionCase::Plans() {
  PlanOptions whole;
  whole.parts = 1;
  PlanOptions pieces;
  pieces.parts = 7;
  pieces.min_piece_per_row = 1;
  pieces.q_tile_rows = 24;
  return {whole, pieces};
}

int64_t AttentionCase::MultiplyAdds() const {
  int64_t pairs = 0;
  for (const SequenceShape& s : params_.sequences) pairs += int64_t{s.q} * s.kv;
  return 2 * pairs * params_.q_heads * params_.head_dim;
}

void AttentionCase::CheckPlanned(int64_t sample, const std::vector<PlanOptions>& plans,
                                 bool cascade) {
  ComputeReference(sample);
  const bool once = MultiplyAdds() > kLargestRepeated;
  size_t turn = 0;
  size_t target_count = 0;
  ForEachTarget([&](const std::string& target) {
    if (target_count++ > 0 && once) return;
    const auto backend = MakeTested();
    // Slow backends run one plan per variant, in turn, which has every plan and every variant.
    const size_t first = IsSlow() ? turn++ % plans.size() : 0;
    const size_t last = IsSlow() ? first + 1 : plans.size();
    for (size_t i = first; i < last; ++i) {
      SCOPED_TRACE(target + ", parts " + std::to_string(plans[i].parts));
      const Status status = cascade ? RunCascade(*backend, plans[i]) : Run(*backend, plans[i]);
      ASSERT_TRUE(status.ok()) << status.argument() << ": " << status.message();
      ASSERT_EQ(Compare(), "");
    }
  });
}

void AttentionCase::Check(int64_t sample, const std::vector<PlanOptions>& plans) {
  CheckPlanned(sample, plans, false);
}

void AttentionCase::CheckCascade() { CheckPlanned(0, Plans(), true); }

std::unique_ptr<Backend> MakeReference() {
  Result<std::unique_ptr<Backend>> backend = CreateBackend("reference", {});
  EXPECT_TRUE(backend.ok()) << backend.status().message();
  return std::move(*backend);
}

}  // namespace quire::kernels::testing
