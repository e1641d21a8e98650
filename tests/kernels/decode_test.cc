// K1..K4, K6..K8, K11..K15: few query tokens per sequence.
#include <gtest/gtest.h>

#include "kernels/dtype.h"
#include "tests/kernels/testing/attention_case.h"

namespace quire::kernels::testing {
namespace {

std::vector<SequenceShape> RandomLengths(int count, int32_t longest, uint64_t seed) {
  Random random(seed);
  std::vector<SequenceShape> shapes;
  for (int i = 0; i < count; ++i) {
    shapes.push_back({static_cast<int32_t>(1 + random.Below(longest)), 1});
  }
  return shapes;
}

std::vector<SequenceShape> Lengths(std::initializer_list<int32_t> lengths) {
  std::vector<SequenceShape> shapes;
  for (int32_t kv : lengths) shapes.push_back({kv, 1});
  return shapes;
}

CaseParams Heads(std::vector<SequenceShape> shapes, int32_t q_heads, int32_t kv_heads,
                 int32_t head_dim, int32_t block_tokens) {
  CaseParams params;
  params.sequences = std::move(shapes);
  params.q_heads = q_heads;
  params.kv_heads = kv_heads;
  params.head_dim = head_dim;
  params.block_tokens = block_tokens;
  return params;
}

void SetTypes(CaseParams& params, DType dtype, DType q_and_out) {
  params.dtype = dtype;
  params.q_dtype = q_and_out;
  params.out_dtype = q_and_out;
}

TEST(DecodeTest, K01_RandomLengths) {
  AttentionCase(Heads(RandomLengths(7, ForSlow(4096, 4), 1), 32, 8, 128, 16)).Check();
}

TEST(DecodeTest, K02_OneQueryHeadPerKvHead) {
  AttentionCase(Heads(RandomLengths(7, ForSlow(2048, 4), 2), 40, 40, 64, 32)).Check();
}

TEST(DecodeTest, K03_Alibi) {
  for (const bool alibi : {false, true}) {
    CaseParams params = Heads(RandomLengths(4, ForSlow(1024, 2), 3), 64, 8, 128, 16);
    params.alibi = alibi;
    AttentionCase(params).Check();
  }
}

TEST(DecodeTest, K04_E4m3ScalesPerTensor) {
  CaseParams params = Heads(RandomLengths(7, ForSlow(1500, 3), 4), 32, 8, 128, 16);
  SetTypes(params, DType::kE4M3, DType::kF32);
  params.scale_kind = ScaleKind::kPerTensor;
  AttentionCase(params).Check();
  params.sequences = {{300, 40}, {77, 5}, {65, 17}};
  AttentionCase(params).Check();
  params.shared_prefix = 48;
  AttentionCase(params).CheckCascade();
}

TEST(DecodeTest, K04_ScalesPerHeadAndPerToken) {
  for (const DType dtype : {DType::kE4M3, DType::kI8}) {
    for (const ScaleKind kind : {ScaleKind::kPerHead, ScaleKind::kPerToken}) {
      CaseParams params = Heads({{700, 1}, {33, 1}, {190, 1}, {129, 30}}, 12, 4, 96, 16);
      SetTypes(params, dtype, DType::kF32);
      params.scale_kind = kind;
      AttentionCase(params).Check();
      params.out_dtype = DType::kBF16;
      params.preset = LayoutPreset::kBlkvh;
      AttentionCase(params).Check();
    }
  }
}

TEST(DecodeTest, K06_OffsetsPastTwoToThe31) {
  CaseParams params = Heads({{523, 1}, {37, 1}, {2011, 1}}, 8, 8, 256, 32);
  params.pool_blocks = 32768;
  AttentionCase test(params);
  const PagedKvLayout& layout = test.pool().layout();
  ASSERT_GT(layout.RowOffset(32767, 0, 0, false, 0), int64_t{1} << 31);
  test.Check();
}

TEST(DecodeTest, K07_SoftcapAndWindow) {
  for (const int32_t head_dim : {128, 256}) {
    for (const int32_t n : {16, 32}) {
      CaseParams params = Heads(Lengths({1328, 18, 463, 1, 54, 293, 70}), n == 16 ? 32 : 6,
                                n == 16 ? 8 : 1, head_dim, n);
      params.softcap = 30;
      params.mask.window_left = 63;
      AttentionCase(params).Check();
    }
  }
}

struct BatchCase {
  int batch;
  int32_t kv;
  int32_t block_tokens;
  int32_t q_heads;
  int32_t head_dim;
};

TEST(DecodeTest, K08_BatchesOfEqualLengths) {
  for (const BatchCase& c : {BatchCase{12, 54, 8, 4, 128}, BatchCase{17, 97, 16, 32, 128},
                             BatchCase{128, 54, 16, 4, 256}, BatchCase{12, 512, 8, 32, 256},
                             BatchCase{17, 2048, 16, 4, 128}, BatchCase{3, 16384, 16, 4, 128}}) {
    for (const DType dtype : {DType::kF16, DType::kE4M3}) {
      CaseParams params =
          Heads(std::vector<SequenceShape>(static_cast<size_t>(ForSlow(c.batch, 6)), {c.kv, 1}),
                c.q_heads, 4, c.head_dim, c.block_tokens);
      SetTypes(params, dtype, DType::kF16);
      AttentionCase(params).Check(/*sample=*/5);
    }
  }
}

TEST(DecodeTest, K08_OneTokenBlocksAreRefused) {
  const Result<PagedKvLayout> layout =
      MakeLayout({.layers = 1, .kv_heads = 4, .head_dim = 128, .block_tokens = 1});
  ASSERT_FALSE(layout.ok());
  EXPECT_EQ(layout.status().argument(), "block_tokens");
  EXPECT_NE(layout.status().message().find("2..256"), std::string::npos);
}

TEST(DecodeTest, K11_SmallWindows) {
  int32_t heads = 1;
  for (const int32_t window_left : {3, 13, 23, 37, 43}) {
    for (const int32_t keep_first : {0, 5}) {
      CaseParams params = Heads(Lengths({1, 3, 19, 99, 199, 1177, 1999}), heads * 3, heads, 64, 16);
      params.mask.window_left = window_left;
      params.mask.keep_first = keep_first;
      params.sequences[3].q = 7;
      params.sequences[4].q = 90;
      AttentionCase(params).Check();
    }
    heads = heads % 8 + 2;
  }
}

TEST(DecodeTest, K12_WindowsAtBlockBorders) {
  for (const int32_t window : {33, 533}) {
    for (const int batch : {1, 3, 13, 32}) {
      std::vector<SequenceShape> shapes;
      for (int i = 0; i < batch; ++i) shapes.push_back({16 * (i % 5 + 33) + i % 3, 1 + i % 2});
      CaseParams params = Heads(shapes, 4, 2, 80, 16);
      params.mask.window_left = window - 1;
      AttentionCase(params).Check(/*sample=*/7);
    }
  }
}

TEST(DecodeTest, K13_Sinks) {
  for (const int32_t kv : {1, 4, 16, 128}) {
    for (const int32_t kv_heads : {8, 32}) {
      for (const int32_t window : {0, 128}) {
        CaseParams params = Heads({{kv, 1}, {kv + 128, 3}, {kv, kv}}, 32, kv_heads, 64, 16);
        params.mask.window_left = window - 1;
        params.largest_sink = 15;
        AttentionCase(params).Check();
      }
    }
  }
}

TEST(DecodeTest, K14_SinkCountsOnceInSplits) {
  // The first piece is empty for the sequence's rows where the window starts
  // after it.
  CaseParams params = Heads({{700, 9}, {900, 1}}, 8, 2, 128, 16);
  params.mask.window_left = 40;
  params.mask.keep_first = 0;
  params.largest_sink = 15;
  PlanOptions options;
  options.parts = 3;
  options.fixed_split = 16;
  AttentionCase(params).Check(0, {options});
}

TEST(DecodeTest, K15_Softcap) {
  for (const float softcap : {1.0f, 30.0f, 50.0f}) {
    CaseParams params = Heads(Lengths({1, 9, 81, 729}), 4, 2, softcap > 1 ? 128 : 256, 16);
    params.softcap = softcap;
    AttentionCase(params).Check();
  }
  CaseParams params = Heads(Lengths({33001, 9}), 2, 1, 128, 16);
  params.softcap = 30;
  AttentionCase(params).Check();
}

TEST(DecodeTest, EveryGroupSize) {
  for (const int32_t group : {1, 2, 3, 5, 7, 8, 12, 16, 32}) {
    for (const LayoutPreset preset : {LayoutPreset::kBlhncSplit, LayoutPreset::kBlkvh}) {
      CaseParams params = Heads({{130, 1}, {77, 1}, {64, 3}}, group, 1, 192, 8);
      SetTypes(params, group % 2 == 0 ? DType::kF32 : DType::kBF16, DType::kF32);
      params.preset = preset;
      AttentionCase(params).Check();
    }
  }
}

}  // namespace
}  // namespace quire::kernels::testing
