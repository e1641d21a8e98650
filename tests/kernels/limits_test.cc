// K22..K24, K29..K31: long sequences, extreme values, odd strides, empty and
// full tables.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/dtype.h"
#include "tests/kernels/testing/attention_case.h"

namespace quire::kernels::testing {
namespace {

CaseParams Small(std::vector<SequenceShape> shapes) {
  CaseParams params;
  params.sequences = std::move(shapes);
  params.q_heads = 4;
  params.kv_heads = 2;
  params.head_dim = 64;
  return params;
}

PlanOptions Pieces(int32_t parts) {
  PlanOptions options;
  options.parts = parts;
  options.min_piece_per_row = 1;
  return options;
}

TEST(LimitsTest, K22_LongSequences) {
  CaseParams params = Small({{32789, 1}, {5, 1}});
  AttentionCase(params).Check(0, {Pieces(1), Pieces(5)});
  params.sequences = {{39275, 1}};
  params.dtype = DType::kE4M3;
  params.scale_kind = ScaleKind::kPerTensor;
  AttentionCase(params).Check(0, {Pieces(3)});
}

TEST(LimitsTest, K22_OneToManySplitsOfOneSequence) {
  CaseParams params = Small({{131072, 1}});
  params.kv_heads = 1;
  params.q_heads = 2;
  AttentionCase(params).Check(0, {Pieces(1), Pieces(2), Pieces(16), Pieces(128)});
}

// Keys whose products with the query are exact, all near `level`.
void SetExtremeLogits(AttentionCase& test, float level) {
  for (float& value : test.q()) value = 4.0f;
  test.EncodeQuery();
  const PagedKvLayout& layout = test.pool().layout();
  Random random(11);
  for (const int32_t id : test.ids()) {
    for (int64_t t = 0; id >= 0 && t < layout.block_tokens(); ++t) {
      for (int64_t h = 0; h < layout.kv_heads; ++h) {
        const int64_t row = layout.RowOffset(id, 0, h, false, t);
        if (IsPoison(layout.dtype, test.pool().view().base, row)) continue;
        for (int64_t i = 0; i < layout.head_dim; ++i) {
          const float step = i == 0 ? static_cast<float>(random.Below(5)) : 0.0f;
          StoreElement(layout.dtype, test.pool().view().base, row + i, level + step * 8.0f);
        }
      }
    }
  }
}

TEST(LimitsTest, K23_EveryLogitFarFromZero) {
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    for (const float sign : {-1.0f, 1.0f}) {
      CaseParams params = Small({{300, 1}, {90, 5}});
      params.dtype = dtype;
      params.q_dtype = dtype;
      params.out_dtype = dtype;
      AttentionCase test(params);
      // 64 * 4 * 2048 / 8 = 65536, beyond a mask value of 5e4.
      SetExtremeLogits(test, sign * 2048.0f);
      test.Check();
      EXPECT_GT(sign * test.LseAt(0, 0), 5e4f);
    }
  }
}

TEST(LimitsTest, K24_FixedSplitsAreBatchInvariant) {
  CaseParams params = Small({{4096, 1}, {5000, 1}, {8192, 1}, {4999, 1}});
  params.q_dtype = DType::kF32;
  params.out_dtype = DType::kF32;
  PlanOptions options;
  options.parts = 2;
  options.fixed_split = 2048;
  const auto backend = MakeTested();
  CaseParams larger = params;
  for (int i = 0; i < 8; ++i) larger.sequences.push_back({700 + 1000 * i, 1});
  AttentionCase twelve(larger);
  ASSERT_TRUE(twelve.Run(*backend, options).ok());
  const std::vector<std::byte> all(twelve.out());
  for (const int64_t batch : {4, 5}) {
    AttentionParams p = twelve.params();
    BlockTableView table = twelve.table();
    table.rows = batch;
    p.q_rows = batch;
    const Result<AttentionPlan> plan = backend->Plan(twelve.pool().view(), table, p, options);
    ASSERT_TRUE(plan.ok());
    std::vector<float> space(static_cast<size_t>(plan->workspace_bytes / 4));
    ASSERT_TRUE(backend
                    ->DecodeAttention(twelve.pool().view(), table, p, *plan,
                                      std::as_writable_bytes(std::span<float>(space)))
                    .ok());
    const size_t bytes = 4 * 4 * 64 * sizeof(float);
    EXPECT_TRUE(std::equal(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(bytes),
                           twelve.out().begin()))
        << batch;
  }
}

TEST(LimitsTest, SamePlanSameBitsOnAnyThreads) {
  CaseParams params = Small({{900, 20}, {3000, 1}, {17, 1}});
  AttentionCase test(params);
  ASSERT_TRUE(test.Run(*MakeTested(1), Pieces(6)).ok());
  const std::vector<std::byte> one = test.out();
  ASSERT_TRUE(test.Run(*MakeTested(3), Pieces(6)).ok());
  EXPECT_EQ(one, test.out());
}

TEST(LimitsTest, K29_EmptyAndFullTables) {
  AttentionCase(Small({})).Check();
  AttentionCase(Small({{0, 1}, {1, 1}, {15, 1}, {160, 1}, {0, 0}, {5, 0}})).Check();
  CaseParams sink = Small({{0, 1}, {3, 1}});
  sink.largest_sink = 5;
  AttentionCase test(sink);
  test.Check();
  EXPECT_EQ(test.OutAt(0, 0, 0), 0.0f);
  EXPECT_EQ(test.LseAt(0, 1), test.params().sinks[1]);
}

std::string Argument(AttentionCase& test, const std::function<void(BlockTableView&)>& change) {
  const auto backend = MakeTested();
  BlockTableView table = test.table();
  change(table);
  return backend->Plan(test.pool().view(), table, test.params(), {}).status().argument();
}

TEST(LimitsTest, K29_BadTablesAreRefused) {
  AttentionCase test(Small({{40, 1}, {33, 2}}));
  const auto backend = MakeTested();
  ASSERT_TRUE(test.Run(*backend, {}).ok());
  EXPECT_EQ(Argument(test, [](BlockTableView& t) { t.columns = 2; }), "table.lens");
  EXPECT_EQ(Argument(test, [](BlockTableView& t) { t.row_stride = 2; }), "table.row_stride");
  EXPECT_EQ(Argument(test, [](BlockTableView& t) { t.ids = nullptr; }), "table.ids");
  EXPECT_EQ(Argument(test, [](BlockTableView& t) { t.lens = nullptr; }), "table.lens");
  for (const int32_t bad : {-1, -2, 1 << 20}) {
    const int32_t good = std::exchange(test.ids()[2], bad);
    EXPECT_EQ(Argument(test, [](BlockTableView&) {}), "table.ids") << bad;
    test.ids()[2] = good;
  }
  test.lens()[1] = -1;
  EXPECT_EQ(Argument(test, [](BlockTableView&) {}), "table.lens");
}

TEST(LimitsTest, K29_BadCallsAreRefusedBeforeAnyWrite) {
  AttentionCase test(Small({{40, 1}, {33, 2}}));
  const auto backend = MakeTested();
  ASSERT_TRUE(test.Run(*backend, {}).ok());
  Result<AttentionPlan> plan = backend->Plan(test.pool().view(), test.table(), test.params(), {});
  ASSERT_TRUE(plan.ok());
  ASSERT_EQ(plan->workspace_bytes, 0);
  const std::vector<std::byte> before = test.out();
  const auto argument = [&](const std::function<void(AttentionParams&)>& change) {
    AttentionParams p = test.params();
    change(p);
    return backend->DecodeAttention(test.pool().view(), test.table(), p, *plan, {}).argument();
  };
  EXPECT_EQ(argument([](AttentionParams&) {}), "");
  EXPECT_EQ(argument([](AttentionParams& p) { p.q = nullptr; }), "params.q");
  EXPECT_EQ(argument([](AttentionParams& p) { p.out = nullptr; }), "params.out");
  EXPECT_EQ(argument([](AttentionParams& p) { p.q_heads = 5; }), "params.q_heads");
  EXPECT_EQ(argument([](AttentionParams& p) { p.q_heads = 66; }), "params.q_heads");
  EXPECT_EQ(argument([](AttentionParams& p) { p.layer = 1; }), "params.layer");
  EXPECT_EQ(argument([](AttentionParams& p) { p.q_rows = 4; }), "params.cu_q_lens");
  EXPECT_EQ(argument([](AttentionParams& p) { p.cu_q_lens = nullptr; }), "params.q_rows");
  EXPECT_EQ(argument([](AttentionParams& p) { p.q_dtype = DType::kI8; }), "params.q_dtype");
  EXPECT_EQ(argument([](AttentionParams& p) { p.out_dtype = DType::kE4M3; }), "params.out_dtype");
  EXPECT_EQ(argument([](AttentionParams& p) { p.out_row_stride = 3; }), "params.out_row_stride");
  EXPECT_EQ(argument([](AttentionParams& p) { p.softcap = -1; }), "params.softcap");
  EXPECT_EQ(argument([](AttentionParams& p) { p.scale = std::nanf(""); }), "params.scale");
  EXPECT_EQ(argument([](AttentionParams& p) { p.mask.window_left = -2; }),
            "params.mask.window_left");
  EXPECT_EQ(before, test.out());
}

TEST(LimitsTest, K29_StalePlansAndSmallWorkspacesAreRefused) {
  AttentionCase test(Small({{400, 1}, {33, 2}}));
  const auto backend = MakeTested();
  ASSERT_TRUE(test.Run(*backend, {}).ok());
  Result<AttentionPlan> plan =
      backend->Plan(test.pool().view(), test.table(), test.params(), Pieces(4));
  ASSERT_TRUE(plan.ok());
  ASSERT_GT(plan->workspace_bytes, 0);
  const Status small =
      backend->DecodeAttention(test.pool().view(), test.table(), test.params(), *plan, {});
  EXPECT_EQ(small.code(), StatusCode::kNoSpace);
  EXPECT_EQ(small.argument(), "workspace");
  test.lens()[0] = 399;
  EXPECT_EQ(test.RunPlan(*backend, *plan).argument(), "plan");
}

TEST(LimitsTest, K29_PoolsAndBackendsAreChecked) {
  AttentionCase test(Small({{40, 1}}));
  const auto backend = MakeTested();
  ASSERT_TRUE(test.Run(*backend, {}).ok());
  const auto argument = [&](const std::function<void(KvPoolView&)>& change) {
    KvPoolView pool = test.pool().view();
    change(pool);
    return backend->Plan(pool, test.table(), test.params(), {}).status().argument();
  };
  EXPECT_EQ(argument([](KvPoolView& p) { p.base = nullptr; }), "pool.base");
  EXPECT_EQ(argument([](KvPoolView& p) { p.base += 8; }), "pool.base");
  const char* refused = TestedName() == "cpu" ? "pool.memory" : "";
  EXPECT_EQ(argument([](KvPoolView& p) { p.memory = MemoryKind::kDevice; }), refused);
  EXPECT_EQ(argument([](KvPoolView& p) { p.num_blocks = 1 << 20; }), "pool_bytes");
  EXPECT_EQ(argument([](KvPoolView& p) { p.layout.head_stride += 16; }), "layout");
  EXPECT_EQ(CreateBackend("gpu", {}).status().argument(), "name");
  EXPECT_EQ(CreateBackend("cpu", {.threads = 0}).status().argument(), "options.threads");
}

TEST(LimitsTest, K30_StridesOfEveryTensor) {
  for (const LayoutPreset preset : {LayoutPreset::kBlhncSplit, LayoutPreset::kBlkvh}) {
    for (const int32_t kv_heads : {1, 3}) {
      CaseParams params = Small({{100, 1}, {70, 9}, {16, 16}});
      params.q_heads = 6;
      params.kv_heads = kv_heads;
      params.preset = preset;
      params.layers = 3;
      params.layer = 1;
      params.q_padding = 24;
      params.out_padding = 40;
      params.table_padding = 5;
      params.change_layout = [](PagedKvLayout& l, int64_t) {
        l.block_bytes += 4096;
        l.block_stride = l.block_bytes / ElementBytes(l.dtype);
      };
      AttentionCase(params).Check();
    }
  }
}

TEST(LimitsTest, K30_LayerFirstTokenMajorAndPackedStrides) {
  CaseParams params = Small({{100, 1}, {70, 9}});
  params.kv_heads = 4;
  params.layers = 2;
  params.layer = 1;
  params.change_layout = [](PagedKvLayout& l,
                            int64_t blocks) {  // [layer][block][head][K|V]
    l.preset = LayoutPreset::kCustom;
    l.block_stride = l.kv_heads * l.head_stride;
    l.layer_stride = blocks * l.block_stride;
  };
  AttentionCase(params).Check();
  params.change_layout = [](PagedKvLayout& l,
                            int64_t) {  // [layer][K|V][token][head]
    l.preset = LayoutPreset::kCustom;
    l.head_stride = l.head_dim;
    l.token_stride = int64_t{l.kv_heads} * l.head_dim;
    l.v_offset = l.block_tokens() * l.token_stride;
  };
  AttentionCase(params).Check();
  params.change_layout = [](PagedKvLayout& l, int64_t) {  // K and V in one row
    l.preset = LayoutPreset::kCustom;
    l.token_stride = 2 * l.head_dim;
    l.v_offset = l.head_dim;
  };
  AttentionCase(params).Check();
}

TEST(LimitsTest, K31_ManyRows) {
  CaseParams params = Small(std::vector<SequenceShape>(2200, {5, 1}));
  params.q_heads = 32;
  params.kv_heads = ForSlow(32, 32);
  params.extra_blocks = 1;
  AttentionCase(params).Check(/*sample=*/20, {Pieces(7)});
}

}  // namespace
}  // namespace quire::kernels::testing
