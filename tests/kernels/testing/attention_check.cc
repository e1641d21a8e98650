// What an AttentionCase should have given: the reference, the comparison, all variants.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>

#include "tests/kernels/testing/attention_case.h"

namespace quire::kernels::testing {
namespace {

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
