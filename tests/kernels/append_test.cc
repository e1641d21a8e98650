// K5, K9, K10, K20, K21, K32: many query tokens per sequence.
#include <gtest/gtest.h>

#include "kernels/dtype.h"
#include "tests/kernels/testing/attention_case.h"

namespace quire::kernels::testing {
namespace {

CaseParams Append(std::vector<SequenceShape> shapes, int32_t q_heads, int32_t kv_heads,
                  int32_t head_dim) {
  CaseParams params;
  params.sequences = std::move(shapes);
  params.q_heads = q_heads;
  params.kv_heads = kv_heads;
  params.head_dim = head_dim;
  return params;
}

void Repeat(int count, SequenceShape shape, std::vector<SequenceShape>* shapes) {
  shapes->insert(shapes->end(), static_cast<size_t>(ForSlow(count, 8)), shape);
}

TEST(AppendTest, K05_SoftcapAndWindow) {
  for (const int32_t head_dim : {80, 128, 256}) {
    for (const float softcap : {0.0f, 50.0f}) {
      for (const int32_t window : {0, 256}) {
        CaseParams params = Append({{1328, 1}, {18, 5}, {463, 129}}, head_dim == 128 ? 8 : 4,
                                   head_dim == 128 ? 2 : 4, head_dim);
        params.softcap = softcap;
        params.mask.window_left = window - 1;
        AttentionCase(params).Check();
      }
    }
  }
}

TEST(AppendTest, K09_PrefillCausalAndNot) {
  for (const SequenceShape shape :
       {SequenceShape{54, 37}, SequenceShape{97, 17}, SequenceShape{512, 127},
        SequenceShape{2048, ForSlow(577, 4)}}) {
    for (const bool causal : {true, false}) {
      CaseParams params = Append({shape, {shape.kv - 3, shape.q / 2}}, 4, 2, 64);
      params.mask.causal = causal;
      params.q_dtype = DType::kF32;
      AttentionCase(params).Check();
    }
  }
}

TEST(AppendTest, K10_MoreQueriesThanKeys) {
  CaseParams params = Append({{2, 235}, {1, 1335}, {0, 4}}, 6, 2, 64);
  AttentionCase test(params);
  test.Check();
  const auto backend = MakeTested();
  ASSERT_TRUE(test.Run(*backend, {}).ok());
  // Query 232 of the first sequence stands before key 0.
  for (int64_t i = 0; i < 64; ++i) EXPECT_EQ(test.OutAt(232, 0, i), 0.0f);
  EXPECT_EQ(test.LseAt(232, 5), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isfinite(test.LseAt(233, 5)));
  EXPECT_EQ(test.LseAt(235 + 1335 + 3, 0), -std::numeric_limits<float>::infinity());
}

TEST(AppendTest, K20_MixedBatches) {
  std::vector<std::vector<SequenceShape>> batches(5);
  Repeat(77, {2048, 1}, &batches[0]);
  Repeat(264, {600, 1}, &batches[1]);
  Repeat(12, {5000, 3}, &batches[1]);
  Repeat(100, {1024, 1}, &batches[2]);
  Repeat(2, {8192, 17}, &batches[2]);
  Repeat(99, {766, 2}, &batches[3]);
  Repeat(1, {1024, 512}, &batches[3]);
  batches[4] = {{235, 2}, {13353, 1}, {2, 235}};
  for (const auto& batch : batches) AttentionCase(Append(batch, 7, 1, 64)).Check(/*sample=*/4);
  AttentionCase(Append(batches[3], 8, 2, 128)).Check(/*sample=*/3);
}

TEST(AppendTest, K21_EveryTargetDecodeAndPrefill) {
  for (const int32_t head_dim : {80, 96, 128}) {
    CaseParams params = Append({{213, 1}, {1, 1}, {312, 1}, {7, 1}, {7812, 1}}, 9, 3, head_dim);
    AttentionCase(params).Check();
    params.sequences = {
        {992, ForSlow(245, 4)}, {1234, 1}, {1145, ForSlow(98, 3)}, {4162, 1}, {5, 5}, {16, 3}};
    AttentionCase(params).Check();
  }
  const int32_t prompt = ForSlow(2345, 5);
  AttentionCase(Append({{prompt, prompt}, {5131, 134}}, 3, 1, 64)).Check();
  const Result<PagedKvLayout> refused = MakeLayout({.layers = 1, .kv_heads = 3, .head_dim = 112});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().argument(), "head_dim");
}

// Rows `begin`..`begin + count - 1` of a run, as one call would give them.
void ExpectSameRows(const AttentionCase& whole, int64_t begin, const AttentionCase& part,
                    int64_t count, int64_t heads, int64_t dim) {
  // Tensor cores round probabilities to bf16, by up to 2^-9, relative to a maximum that depends on
  // where tiles begin: two runs differ by the two roundings together, which partly cancel. Scores
  // and sums stay fp32, and so do LSEs.
  const Bounds bounds = TestedName() == "cpu" ? Bounds{1e-5, 1e-5} : Bounds{0x1.8p-9, 1e-5};
  for (int64_t r = 0; r < count; ++r) {
    for (int64_t h = 0; h < heads; ++h) {
      double error = 0;
      double norm = 0;
      for (int64_t i = 0; i < dim; ++i) {
        const double a = double{whole.OutAt(begin + r, h, i)};
        const double b = double{part.OutAt(r, h, i)};
        error += (a - b) * (a - b);
        norm += a * a;
      }
      ASSERT_LE(error, bounds.row * bounds.row * norm) << "row " << begin + r << " head " << h;
      ASSERT_NEAR(whole.LseAt(begin + r, h), part.LseAt(r, h), bounds.lse);
    }
  }
}

TEST(AppendTest, K32_ChunksEqualOneShot) {
  CaseParams params = Append({{300, 300}}, 6, 3, 128);
  params.q_dtype = DType::kF32;
  params.out_dtype = DType::kF32;
  params.mask.window_left = 150;
  params.mask.keep_first = 4;
  const auto backend = MakeTested();
  AttentionCase whole(params);
  ASSERT_TRUE(whole.Run(*backend, {}).ok());
  // Chunks of 100, 130, 69, then one token as decode: same keys and ids, fewer
  // of them.
  int32_t begin = 0;
  for (const int32_t count : {100, 130, 69, 1}) {
    CaseParams chunk = params;
    chunk.sequences = {{begin + count, count}};
    AttentionCase part(chunk);
    const int64_t row = 6 * 128;
    std::copy(whole.q().begin() + begin * row, whole.q().begin() + (begin + count) * row,
              part.q().begin());
    part.EncodeQuery();
    AttentionParams call = part.params();
    BlockTableView table = whole.table();
    const int32_t len = begin + count;
    table.lens = &len;
    std::vector<float> out(static_cast<size_t>(count * row));
    std::vector<float> lse(static_cast<size_t>(count) * 6);
    ASSERT_TRUE(part.Run(*backend, {}).ok());  // sizes the outputs
    call = part.params();
    const Result<AttentionPlan> plan = backend->Plan(whole.pool().view(), table, call, {});
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    std::vector<std::byte> space(static_cast<size_t>(plan->workspace_bytes));
    ASSERT_TRUE(backend->AppendAttention(whole.pool().view(), table, call, *plan, space).ok());
    ExpectSameRows(whole, begin, part, count, 6, 128);
    begin += count;
  }
}

}  // namespace
}  // namespace quire::kernels::testing
