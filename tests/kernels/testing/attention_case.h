// An attention call on a poisoned pool, compared row by row with the fp64
// reference.
#ifndef QUIRE_TESTS_KERNELS_TESTING_ATTENTION_CASE_H_
#define QUIRE_TESTS_KERNELS_TESTING_ATTENTION_CASE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/kernels/testing/backends.h"
#include "tests/kernels/testing/pool_fixture.h"

namespace quire::kernels::testing {

struct SequenceShape {
  int32_t kv = 0;
  int32_t q = 1;
};

struct CaseParams {
  std::vector<SequenceShape> sequences;
  int32_t q_heads = 0;
  int32_t kv_heads = 0;
  int32_t head_dim = 128;
  int32_t block_tokens = 16;
  DType dtype = DType::kBF16;
  DType q_dtype = DType::kBF16;
  DType out_dtype = DType::kBF16;
  ScaleKind scale_kind = ScaleKind::kNone;
  LayoutPreset preset = LayoutPreset::kBlhncSplit;
  int32_t layers = 1;
  int32_t layer = 0;
  AttentionMask mask;
  float softcap = 0;
  bool alibi = false;
  float largest_sink = 0;         // > 0: sinks up to this
  int32_t shared_prefix = 0;      // tokens whose blocks all sequences share
  float spread = 1.0f;            // of K and V
  int64_t extra_blocks = 9;       // unused, poisoned
  bool spare_block_zero = false;  // block 0 is among the unused
  int64_t pool_blocks = 0;  // > 0: a pool this large, of which only the highest ids are touched
  int64_t q_padding = 0;    // elements between rows
  int64_t out_padding = 0;
  int64_t table_padding = 0;  // columns between rows of the table
  uint64_t seed = 1;
  // Changes the layout after MakeLayout (strides); sees the block count.
  std::function<void(PagedKvLayout&, int64_t)> change_layout;
};

// Bound on the relative error of a row, and on its LSE.
struct Bounds {
  double row;
  double lse;
};

Bounds BoundsFor(DType stored, DType out);

class AttentionCase {
 public:
  explicit AttentionCase(const CaseParams& params);

  // Copies must not share the views into their vectors.
  AttentionCase(const AttentionCase&) = delete;
  AttentionCase& operator=(const AttentionCase&) = delete;

  TestPool& pool() { return *pool_; }

  BlockTableView table() const;
  AttentionParams params();

  std::vector<int32_t>& ids() { return ids_; }

  std::vector<int32_t>& lens() { return lens_; }

  std::vector<float>& q() { return q_values_; }

  // Encodes q() again; call after changing it.
  void EncodeQuery();

  // Runs with a plan from `options`, or a cascade plan; outputs are poisoned
  // before.
  Status Run(Backend& backend, const PlanOptions& options);
  Status RunCascade(Backend& backend, const PlanOptions& options);
  Status RunPlan(Backend& backend, const AttentionPlan& plan);

  // Output of the last run.
  float OutAt(int64_t row, int64_t head, int64_t i) const;
  float LseAt(int64_t row, int64_t head) const;

  const std::vector<std::byte>& out() const { return out_; }

  const std::vector<float>& lse() const { return lse_; }

  // Computes the reference for about `sample` sequences (0: all), first and
  // last included.
  void ComputeReference(int64_t sample = 0);

  // Compares the last run with the reference: a message, or "" if all is within
  // bounds.
  std::string Compare() const;

  // Splits and threads to try by default: one part, and several pieces.
  static std::vector<PlanOptions> Plans();

  // Reference, then every Highway target with every plan; reports through
  // gtest. With sanitizers large cases run on the first target only.
  void Check(int64_t sample = 0, const std::vector<PlanOptions>& plans = Plans());
  void CheckCascade();

 private:
  void PoisonOutputs();
  void FillTable(std::vector<int32_t> free, Random& random);
  bool BlockIsVisible(const SequenceShape& shape, int64_t column) const;
  std::string CompareRow(int64_t row, int64_t head) const;
  std::string ComparePadding() const;
  void ComputeSlice(int64_t sequence, int64_t begin, int64_t rows);
  int64_t MultiplyAdds() const;
  void CheckPlanned(int64_t sample, const std::vector<PlanOptions>& plans, bool cascade);

  CaseParams params_;
  std::unique_ptr<TestPool> pool_;
  int64_t columns_ = 0;
  int64_t q_rows_ = 0;
  std::vector<int32_t> ids_;
  std::vector<int32_t> lens_;
  std::vector<int32_t> cu_q_lens_;
  std::vector<float> q_values_;
  std::vector<std::byte> q_;
  std::vector<std::byte> out_;
  std::vector<float> lse_;
  std::vector<float> slopes_;
  std::vector<float> sinks_;
  std::vector<float> k_scales_;
  std::vector<float> v_scales_;
  std::vector<float> want_out_;  // dense rows
  std::vector<float> want_lse_;
  std::vector<bool> wanted_;  // per query row
};

}  // namespace quire::kernels::testing

#endif  // QUIRE_TESTS_KERNELS_TESTING_ATTENTION_CASE_H_
