// Layouts: strides of the presets, ids, and what Validate refuses.
#include <gtest/gtest.h>

#include <functional>

#include "tests/kernels/testing/pool_fixture.h"

namespace quire::kernels::testing {
namespace {

LayoutParams Params() {
  return {.dtype = DType::kBF16, .layers = 3, .kv_heads = 4, .head_dim = 128, .block_tokens = 16};
}

TEST(LayoutTest, DefaultPresetKeepsAHeadInOneRun) {
  const PagedKvLayout l = Layout(Params());
  EXPECT_EQ(l.token_stride, 128);
  EXPECT_EQ(l.v_offset, 16 * 128);
  EXPECT_EQ(l.head_stride, 2 * 16 * 128);
  EXPECT_EQ(l.layer_stride, 4 * 2 * 16 * 128);
  EXPECT_EQ(l.block_bytes, 3 * 4 * 2 * 16 * 128 * 2);
  EXPECT_TRUE(l.IsOneExtent());
  EXPECT_EQ(l.RowOffset(2, 1, 3, true, 5),
            2 * l.block_stride + l.layer_stride + 3 * l.head_stride + l.v_offset + 5 * 128);
}

TEST(LayoutTest, SecondPresetKeepsAllKeysOfALayerTogether) {
  LayoutParams params = Params();
  params.preset = LayoutPreset::kBlkvh;
  const PagedKvLayout l = Layout(params);
  EXPECT_EQ(l.head_stride, 16 * 128);
  EXPECT_EQ(l.v_offset, 4 * 16 * 128);
  EXPECT_NE(l.id, Layout(Params()).id);
}

TEST(LayoutTest, BlocksArePaddedToPagesOrToTheGivenSize) {
  LayoutParams params = Params();
  params.head_dim = 80;
  params.kv_heads = 1;
  params.layers = 1;
  EXPECT_EQ(Layout(params).content_bytes(), 2 * 16 * 80 * 2);
  EXPECT_EQ(Layout(params).block_bytes, 8192);
  params.block_bytes = 5120;
  EXPECT_EQ(Layout(params).block_bytes, 5120);
  EXPECT_EQ(Layout(params).block_stride, 2560);
  for (const int64_t bad : {5119, 4096, 5121}) {
    params.block_bytes = bad;
    EXPECT_EQ(MakeLayout(params).status().argument(), "block_bytes") << bad;
  }
}

TEST(LayoutTest, PerTokenScalesFollowTheRows) {
  LayoutParams params = Params();
  params.dtype = DType::kE4M3;
  params.scale_kind = ScaleKind::kPerToken;
  const PagedKvLayout l = Layout(params);
  const int64_t rows = l.rows_per_block();
  EXPECT_EQ(l.content_bytes(), rows * 128 + rows * 4);
  EXPECT_EQ(l.ScaleOffset(0, 0, 0, false, 0) * 4, rows * 128);
  EXPECT_EQ(l.ScaleOffset(0, 2, 3, true, 15) * 4, l.content_bytes() - 4);
  EXPECT_EQ(l.ScaleOffset(1, 0, 0, false, 0) * 4, l.block_bytes + rows * 128);
}

TEST(LayoutTest, EveryFieldEntersTheId) {
  const PagedKvLayout base = Layout(Params());
  const std::function<void(PagedKvLayout&)> changes[] = {
      [](PagedKvLayout& l) { l.dtype = DType::kF16; },
      [](PagedKvLayout& l) { l.scale_kind = ScaleKind::kPerHead; },
      [](PagedKvLayout& l) { l.layers = 4; },
      [](PagedKvLayout& l) { l.kv_heads = 2; },
      [](PagedKvLayout& l) { l.head_dim = 64; },
      [](PagedKvLayout& l) { l.log2_block_tokens = 5; },
      [](PagedKvLayout& l) { l.block_stride += 8; },
      [](PagedKvLayout& l) { l.layer_stride += 8; },
      [](PagedKvLayout& l) { l.head_stride += 8; },
      [](PagedKvLayout& l) { l.token_stride += 8; },
      [](PagedKvLayout& l) { l.k_offset += 8; },
      [](PagedKvLayout& l) { l.v_offset += 8; },
      [](PagedKvLayout& l) { l.scale_offset += 8; },
      [](PagedKvLayout& l) { l.block_bytes += 8; },
  };
  for (size_t i = 0; i < std::size(changes); ++i) {
    PagedKvLayout changed = base;
    changes[i](changed);
    EXPECT_NE(LayoutId(changed), base.id) << i;
    EXPECT_EQ(changed.Validate(1, int64_t{1} << 30).argument(), i == 1 ? "scale_kind" : "layout")
        << i;
  }
}

TEST(LayoutTest, OverlappingAndUnalignedStridesAreRefused) {
  const auto argument = [](const std::function<void(PagedKvLayout&)>& change) {
    PagedKvLayout l = Layout(Params());
    l.preset = LayoutPreset::kCustom;
    change(l);
    l.id = LayoutId(l);
    return l.Validate(8, int64_t{1} << 24).argument();
  };
  EXPECT_EQ(argument([](PagedKvLayout&) {}), "");
  EXPECT_EQ(argument([](PagedKvLayout& l) { l.token_stride = 64; }), "layout");
  EXPECT_EQ(argument([](PagedKvLayout& l) { l.head_stride /= 2; }), "layout");
  EXPECT_EQ(argument([](PagedKvLayout& l) { l.v_offset = 0; }), "layout");
  EXPECT_EQ(argument([](PagedKvLayout& l) { l.token_stride = 129; }), "layout");
  EXPECT_EQ(argument([](PagedKvLayout& l) { l.block_stride = -l.block_stride; }), "layout");
  EXPECT_EQ(argument([](PagedKvLayout& l) { l.block_stride = int64_t{1} << 60; }), "layout");
  EXPECT_EQ(argument([](PagedKvLayout& l) { l.block_stride *= 100; }), "pool_bytes");
}

TEST(LayoutTest, ScalesInsideRowsAreRefused) {
  LayoutParams params = Params();
  params.dtype = DType::kE4M3;
  params.scale_kind = ScaleKind::kPerToken;
  const auto argument = [&](const std::function<void(PagedKvLayout&)>& change) {
    PagedKvLayout l = Layout(params);
    l.preset = LayoutPreset::kCustom;
    change(l);
    l.id = LayoutId(l);
    return l.Validate(8, int64_t{1} << 24).argument();
  };
  const PagedKvLayout base = Layout(params);
  const int64_t after_all = 8 * base.block_bytes / 4;
  EXPECT_EQ(argument([](PagedKvLayout&) {}), "");
  EXPECT_EQ(argument([](PagedKvLayout& l) { l.scale_offset = 0; }), "layout");
  EXPECT_EQ(argument([](PagedKvLayout& l) { l.scale_offset -= 1; }), "layout");
  // The last scales of a block would be the first rows of the next.
  EXPECT_EQ(argument([](PagedKvLayout& l) { l.scale_offset = l.block_bytes / 4 - 1; }), "layout");
  // Other steps than the rows: some block's scales are in another's rows.
  EXPECT_EQ(argument([](PagedKvLayout& l) { l.scale_block_stride += 4; }), "layout");
  EXPECT_EQ(argument([&](PagedKvLayout& l) {  // all scales behind all rows, with steps of their own
              l.scale_offset = after_all;
              l.scale_block_stride = l.layers * l.scale_layer_stride;
            }),
            "");
  EXPECT_EQ(argument([&](PagedKvLayout& l) {  // layer first, each layer's scales behind its rows
              l.block_stride = l.kv_heads * l.head_stride;
              l.layer_stride = 16 * l.block_stride;
              l.scale_offset = 8 * l.block_stride / 4;
              l.scale_block_stride = l.kv_heads * l.scale_head_stride;
              l.scale_layer_stride = l.layer_stride / 4;
            }),
            "");
  EXPECT_EQ(argument([&](PagedKvLayout& l) {  // the same, one block too early
              l.block_stride = l.kv_heads * l.head_stride;
              l.layer_stride = 16 * l.block_stride;
              l.scale_offset = 7 * l.block_stride / 4;
              l.scale_block_stride = l.kv_heads * l.scale_head_stride;
              l.scale_layer_stride = l.layer_stride / 4;
            }),
            "layout");
}

TEST(LayoutTest, PresetBlocksAreWholeUnits) {
  PagedKvLayout l = Layout(Params());
  l.block_bytes += 16;
  l.block_stride += 16 / ElementBytes(l.dtype);
  l.id = LayoutId(l);
  EXPECT_EQ(l.Validate(1, 1 << 24).argument(), "block_bytes");
}

TEST(LayoutTest, PoolsEndWhereTheirBlocksEnd) {
  const PagedKvLayout l = Layout(Params());
  EXPECT_TRUE(l.Validate(10, 10 * l.block_bytes).ok());
  EXPECT_EQ(l.Validate(10, 10 * l.block_bytes - 2).argument(), "pool_bytes");
  EXPECT_EQ(l.Validate(0, 1 << 20).argument(), "num_blocks");
  EXPECT_EQ(l.Validate((int64_t{1} << 31) - 1, INT64_MAX).argument(), "num_blocks");
  EXPECT_TRUE(l.Validate((int64_t{1} << 31) - 2, INT64_MAX).ok());
}

TEST(LayoutTest, BadShapesAreNamed) {
  const auto argument = [](const std::function<void(LayoutParams&)>& change) {
    LayoutParams params = Params();
    change(params);
    return MakeLayout(params).status().argument();
  };
  EXPECT_EQ(argument([](LayoutParams& p) { p.dtype = static_cast<DType>(9); }), "dtype");
  EXPECT_EQ(argument([](LayoutParams& p) { p.layers = 0; }), "layers");
  EXPECT_EQ(argument([](LayoutParams& p) { p.kv_heads = -1; }), "kv_heads");
  EXPECT_EQ(argument([](LayoutParams& p) { p.block_tokens = 24; }), "block_tokens");
  EXPECT_EQ(argument([](LayoutParams& p) { p.block_tokens = 512; }), "block_tokens");
  EXPECT_EQ(argument([](LayoutParams& p) { p.scale_kind = ScaleKind::kPerHead; }), "scale_kind");
  EXPECT_EQ(argument([](LayoutParams& p) { p.preset = LayoutPreset::kCustom; }), "preset");
}

}  // namespace
}  // namespace quire::kernels::testing
