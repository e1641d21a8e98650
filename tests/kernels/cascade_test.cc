// K16..K19: shared prefixes and merging of partial states.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/dtype.h"
#include "tests/kernels/testing/attention_case.h"

namespace quire::kernels::testing {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

CaseParams Shared(int batch, int32_t prefix, int32_t own, int32_t q, int32_t block_tokens) {
  CaseParams params;
  for (int i = 0; i < std::max(std::min(batch, 3), ForSlow(batch, 4)); ++i)
    params.sequences.push_back({prefix + own + i % 3, q});
  params.shared_prefix = prefix;
  params.q_heads = 8;
  params.kv_heads = 2;
  params.head_dim = 64;
  params.block_tokens = block_tokens;
  return params;
}

TEST(CascadeTest, K16_CascadeEqualsFlat) {
  for (const int32_t prefix : {128, 512, 2048}) {
    for (const int32_t own : {17, 37}) {
      for (const int32_t n : {2, 16}) {
        AttentionCase(Shared(own == 17 ? 12 : 17, prefix, own, own == 17 ? 1 : 9, n))
            .CheckCascade();
      }
    }
  }
}

TEST(CascadeTest, K17_MixedLengthsBehindAPrefix) {
  CaseParams params;
  params.sequences = {{871, ForSlow(129, 2)}, {280, 18}, {988, 37}, {257, 1}};
  params.shared_prefix = 256;
  params.q_heads = 16;
  params.kv_heads = 2;
  params.head_dim = 192;
  AttentionCase(params).CheckCascade();
  params.sequences = {{2304, ForSlow(1023, 6)}, {257, 1}};
  params.q_heads = 3;
  params.kv_heads = 1;
  params.head_dim = 64;
  AttentionCase(params).CheckCascade();
}

TEST(CascadeTest, K17_FourHundredDecodes) {
  CaseParams params = Shared(400, 512, 20, 1, 16);
  params.alibi = true;
  params.largest_sink = 9;
  AttentionCase(params).CheckCascade();
}

TEST(CascadeTest, K18_WindowThatCutsThePrefixFallsBackToFlat) {
  CaseParams params = Shared(12, 128, 37, 2, 16);
  params.mask.window_left = 99;
  // A flat plan may find "no block" where the window has passed; the prefix
  // test may not.
  params.mask.keep_first = 128;
  AttentionCase test(params);
  const auto backend = MakeTested();
  const Result<AttentionPlan> plan =
      backend->PlanCascade(test.pool().view(), test.table(), 128, test.params(), {});
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_EQ(plan->shared_prefix, 0);
  test.CheckCascade();
  params.mask.window_left = 1000;
  AttentionCase wide(params);
  const Result<AttentionPlan> kept =
      backend->PlanCascade(wide.pool().view(), wide.table(), 128, wide.params(), {});
  ASSERT_TRUE(kept.ok());
  EXPECT_EQ(kept->shared_prefix, 128);
  wide.CheckCascade();
}

TEST(CascadeTest, PrefixMustBeWholeEqualBlocks) {
  AttentionCase test(Shared(3, 64, 20, 1, 16));
  const auto backend = MakeTested();
  const auto argument = [&](int64_t prefix) {
    return backend->PlanCascade(test.pool().view(), test.table(), prefix, test.params(), {})
        .status()
        .argument();
  };
  EXPECT_EQ(argument(64), "");
  EXPECT_EQ(argument(60), "prefix_tokens");
  EXPECT_EQ(argument(0), "prefix_tokens");
  EXPECT_EQ(argument(96), "prefix_tokens");
  EXPECT_EQ(argument(80), "table.ids");
}

struct States {
  int64_t states;
  int64_t rows;
  int32_t heads;
  int32_t head_dim;
  std::vector<float> out;
  std::vector<float> lse;
};

States RandomStates(int64_t states, int64_t rows, int32_t heads, int32_t head_dim, uint64_t seed) {
  Random random(seed);
  States s{states, rows, heads, head_dim, {}, {}};
  s.out.resize(static_cast<size_t>(states * rows * heads * head_dim));
  s.lse.resize(static_cast<size_t>(states * rows * heads));
  for (float& x : s.out) x = random.Normal();
  for (float& x : s.lse) x = 5 * random.Normal();
  return s;
}

MergeParams ParamsFor(const States& s, std::vector<float>* out, std::vector<float>* lse) {
  out->assign(static_cast<size_t>(s.rows * s.heads * s.head_dim), std::nanf(""));
  lse->assign(static_cast<size_t>(s.rows * s.heads), std::nanf(""));
  MergeParams p;
  p.partial_out = s.out.data();
  p.partial_lse = s.lse.data();
  p.states = s.states;
  p.rows = s.rows;
  p.heads = s.heads;
  p.head_dim = s.head_dim;
  p.out = out->data();
  p.lse = lse->data();
  return p;
}

void ExpectMergesAlike(const States& s, const float* sinks) {
  std::vector<float> want_out, want_lse, out, lse;
  MergeParams want = ParamsFor(s, &want_out, &want_lse);
  MergeParams got = ParamsFor(s, &out, &lse);
  want.sinks = got.sinks = sinks;
  ASSERT_TRUE(MakeReference()->MergeStates(want).ok());
  ASSERT_TRUE(MakeTested()->MergeStates(got).ok());
  for (size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(out[i], want_out[i], 1e-5) << i;
  for (size_t i = 0; i < lse.size(); ++i) {
    if (std::isinf(want_lse[i])) {
      ASSERT_EQ(lse[i], want_lse[i]) << i;
    } else {
      ASSERT_NEAR(lse[i], want_lse[i], 1e-5) << i;
    }
  }
}

TEST(MergeTest, K19_Sizes) {
  for (const int64_t rows : {1, 39, 613}) {
    for (const int32_t head_dim : {32, 64, 80, 256}) {
      ExpectMergesAlike(RandomStates(2 + rows % 3, rows, rows == 613 ? 4 : 16, head_dim, 3),
                        nullptr);
    }
  }
  ExpectMergesAlike(RandomStates(2, 4096, 4, 64, 4), nullptr);
  ExpectMergesAlike(RandomStates(3, 39, 64, 128, 5), nullptr);
}

TEST(MergeTest, K19_EmptyStates) {
  States s = RandomStates(2, 4, 1, 64, 6);
  s.lse = {-kInf, 1.0f,  -kInf, kInf,                                 // state 0
           2.0f,  -kInf, -kInf, -kInf};                               // state 1
  for (size_t i = 0; i < 64; ++i) s.out[i] = std::nanf("");           // row 0, state 0
  for (size_t i = 3 * 64; i < 4 * 64; ++i) s.out[i] = std::nanf("");  // row 3, state 0
  ExpectMergesAlike(s, nullptr);
  std::vector<float> out, lse;
  ASSERT_TRUE(MakeTested()->MergeStates(ParamsFor(s, &out, &lse)).ok());
  EXPECT_EQ(out[2 * 64], 0.0f);
  EXPECT_EQ(out[3 * 64], 0.0f);
  EXPECT_EQ(lse[2], -kInf);
  EXPECT_EQ(lse[3], -kInf);
  EXPECT_EQ(out[0], s.out[4 * 64]);
  const float sink = 3.0f;
  ExpectMergesAlike(s, &sink);
}

TEST(MergeTest, NoStatesGiveZeros) {
  States s = RandomStates(1, 3, 2, 64, 7);
  s.states = 0;
  std::vector<float> out, lse;
  ASSERT_TRUE(MakeTested()->MergeStates(ParamsFor(s, &out, &lse)).ok());
  for (const float x : out) EXPECT_EQ(x, 0.0f);
  for (const float x : lse) EXPECT_EQ(x, -kInf);
}

}  // namespace
}  // namespace quire::kernels::testing
