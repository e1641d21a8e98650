// K25, K31: writing rows into slots, quantised or not.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "kernels/dtype.h"
#include "tests/kernels/testing/attention_case.h"
#include "tests/kernels/testing/blocks.h"

namespace quire::kernels::testing {
namespace {

// K and V of some tokens, in a row type.
struct Rows {
  KvRows view;
  std::vector<std::byte> bytes;
  std::vector<float> k_scale;
  std::vector<float> v_scale;
};

Rows MakeRows(const PagedKvLayout& layout, int64_t tokens, DType dtype,
              const std::function<float()>& value) {
  Rows rows;
  const int64_t elements = 2 * tokens * layout.kv_heads * layout.head_dim;
  rows.bytes.resize(static_cast<size_t>(elements * ElementBytes(dtype)));
  for (int64_t i = 0; i < elements; ++i) StoreElement(dtype, rows.bytes.data(), i, value());
  // [token][K|V][head][dim], as a fused projection would leave them.
  rows.view.k = rows.bytes.data();
  rows.view.v = rows.bytes.data() + layout.kv_heads * layout.head_dim * ElementBytes(dtype);
  rows.view.dtype = dtype;
  rows.view.k_token_stride = rows.view.v_token_stride = 2 * layout.kv_heads * layout.head_dim;
  rows.view.k_head_stride = rows.view.v_head_stride = layout.head_dim;
  for (int h = 0; h < layout.kv_heads; ++h) {
    rows.k_scale.push_back(1.0f / 64 + 0.01f * static_cast<float>(h));
    rows.v_scale.push_back(0.037f * static_cast<float>(h + 1));
  }
  rows.view.k_scale = rows.k_scale.data();
  rows.view.v_scale = rows.v_scale.data();
  return rows;
}

std::vector<int64_t> RandomTargets(const TestPool& pool, int64_t tokens, Random& random) {
  const std::vector<int32_t> slots =
      ShuffledIds(pool.view().num_blocks * pool.layout().block_tokens(), random);
  std::vector<int64_t> targets(slots.begin(), slots.begin() + tokens);
  for (int64_t i = 4; i < tokens; i += 9) targets[static_cast<size_t>(i)] = -1 - i % 3;
  return targets;
}

// Writes with the reference and on every target; the whole pools must agree.
void CheckWrite(const PagedKvLayout& layout, int64_t blocks, const Rows& rows,
                const std::vector<int64_t>& targets) {
  const TokenTargets to{targets.data(), static_cast<int64_t>(targets.size())};
  TestPool want(layout, blocks);
  WriteReport want_report;
  ASSERT_TRUE(MakeReference()->WriteKv(want.view(), rows.view, to, &want_report).ok());
  ForEachTarget([&](const std::string& target) {
    const auto backend = MakeTested();
    TestPool got(layout, blocks);
    WriteReport report;
    const Status status = backend->WriteKv(got.view(), rows.view, to, &report);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_TRUE(SameBytes(want, got)) << target << " " << Name(layout.dtype);
    EXPECT_EQ(report.tokens_written, want_report.tokens_written);
    EXPECT_EQ(report.nan_inputs, want_report.nan_inputs) << target << " " << Name(layout.dtype);
  });
}

TEST(WriteTest, K25_RandomTargets) {
  Random random(1);
  for (const DType dtype : kAllTypes) {
    for (const int32_t head_dim : {64, 80, 256}) {
      const int32_t n = head_dim == 64 ? 8 : head_dim == 80 ? 16 : 32;
      const PagedKvLayout layout =
          Layout({.dtype = dtype,
                  .layers = 1,
                  .kv_heads = 8,
                  .head_dim = head_dim,
                  .block_tokens = n,
                  .scale_kind = ElementBytes(dtype) == 1 ? ScaleKind::kPerHead : ScaleKind::kNone});
      const Rows rows = MakeRows(layout, 42, head_dim == 80 ? DType::kBF16 : DType::kF32,
                                 [&] { return 3 * random.Normal(); });
      TestPool shape(layout, 60, false);
      CheckWrite(layout, 60, rows, RandomTargets(shape, 42, random));
    }
  }
}

TEST(WriteTest, K25_LargePool) {
  Random random(2);
  const PagedKvLayout layout = Layout({.layers = 1, .kv_heads = 2, .head_dim = 64});
  const Rows rows = MakeRows(layout, 42, DType::kF16, [&] { return random.Normal(); });
  for (const int64_t blocks : {1024, 10000}) {
    TestPool pool(layout, blocks, false);
    const std::vector<int64_t> targets = RandomTargets(pool, 42, random);
    const TokenTargets to{targets.data(), 42};
    ASSERT_TRUE(MakeTested()->WriteKv(pool.view(), rows.view, to, nullptr).ok());
    int64_t nonzero = 0;
    for (int64_t b = 0; b < blocks; ++b) {
      const auto* row = reinterpret_cast<const uint16_t*>(pool.view().base +
                                                          layout.RowOffset(b, 0, 1, true, 0) * 2);
      for (int64_t slot = 0; slot < 16; ++slot) nonzero += row[slot * 64 + 7] != 0 ? 1 : 0;
    }
    EXPECT_EQ(nonzero, 37);  // 42 less the five that are skipped
  }
}

TEST(WriteTest, K25_AwkwardValues) {
  const float inf = std::numeric_limits<float>::infinity();
  const float values[] = {447,   448,    464,     465,     1e3f,   inf,   std::nanf(""), 0.0f,
                          -0.0f, 3e-3f,  9.8e-4f, 1.9e-3f, 1e-40f, 65519, 65520,         2.5f,
                          -inf,  126.5f, 127.5f,  -127.5f, 0.5f,   1.5f,  6.1e-5f,       2.9e-8f};
  size_t next = 0;
  for (const ScaleKind kind : {ScaleKind::kNone, ScaleKind::kPerToken, ScaleKind::kPerTensor}) {
    for (const DType dtype : kAllTypes) {
      if (ElementBytes(dtype) != 1 && kind != ScaleKind::kNone) continue;
      const PagedKvLayout layout = Layout({.dtype = dtype,
                                           .layers = 2,
                                           .kv_heads = 3,
                                           .head_dim = 80,
                                           .block_tokens = 4,
                                           .scale_kind = kind});
      const Rows rows =
          MakeRows(layout, 5, DType::kF32, [&] { return values[next++ % std::size(values)]; });
      CheckWrite(layout, 4, rows, {3, -1, 0, 14, 9});
    }
  }
}

// Every float between two codes, at, below and above the middle.
TEST(WriteTest, K25_AllE4m3CodesRoundToNearestEven) {
  for (int code = 0; code < 256; ++code) {
    const auto byte = static_cast<uint8_t>(code);
    const float value = E4m3ToFloat(byte);
    if (std::isnan(value)) {
      EXPECT_EQ(code & 0x7f, 0x7f);
      EXPECT_EQ(FloatToE4m3(value) & 0x7f, 0x7f);
      continue;
    }
    EXPECT_EQ(FloatToE4m3(value), byte);
    if ((code & 0x7f) >= 0x7e) continue;
    const float above = E4m3ToFloat(static_cast<uint8_t>(code + 1));
    const float middle = (value + above) / 2;
    const auto even = static_cast<uint8_t>(code + (code & 1));
    EXPECT_EQ(FloatToE4m3(middle), even) << code;
    EXPECT_EQ(FloatToE4m3(std::nextafter(middle, value)), byte) << code;
    EXPECT_EQ(FloatToE4m3(std::nextafter(middle, above)), static_cast<uint8_t>(code + 1)) << code;
  }
  EXPECT_EQ(FloatToE4m3(464), 0x7e);
  EXPECT_EQ(FloatToE4m3(1e30f), 0x7e);
  EXPECT_EQ(FloatToE4m3(-std::numeric_limits<float>::infinity()), 0xfe);
}

TEST(WriteTest, K25_AllHalvesSurviveARoundTrip) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    if (!std::isnan(Fp16ToFloat(half))) {
      ASSERT_EQ(FloatToFp16(Fp16ToFloat(half)), half);
    }
    if (!std::isnan(Bf16ToFloat(half))) {
      ASSERT_EQ(FloatToBf16(Bf16ToFloat(half)), half);
    }
  }
}

TEST(WriteTest, K25_BadTargetsAreRefused) {
  Random random(3);
  const PagedKvLayout layout = Layout({.layers = 1, .kv_heads = 2, .head_dim = 64});
  TestPool pool(layout, 8);
  const TestPool untouched(layout, 8);
  const Rows rows = MakeRows(layout, 3, DType::kF32, [&] { return random.Normal(); });
  for (const bool reference : {false, true}) {
    const auto backend = reference ? MakeReference() : MakeTested();
    const auto argument = [&](std::vector<int64_t> slots) {
      return backend->WriteKv(pool.view(), rows.view, {slots.data(), 3}, nullptr).argument();
    };
    EXPECT_EQ(argument({5, 9, 5}), "targets.slots");
    EXPECT_EQ(argument({5, 9, 128}), "targets.slots");
    KvRows bad = rows.view;
    bad.v = nullptr;
    const int64_t slots[] = {1, 2, 3};
    EXPECT_EQ(backend->WriteKv(pool.view(), bad, {slots, 3}, nullptr).argument(), "rows.v");
    bad = rows.view;
    bad.layer = 1;
    EXPECT_EQ(backend->WriteKv(pool.view(), bad, {slots, 3}, nullptr).argument(), "rows.layer");
    bad.dtype = DType::kI8;
    EXPECT_EQ(backend->WriteKv(pool.view(), bad, {slots, 3}, nullptr).argument(), "rows.dtype");
    EXPECT_TRUE(SameBytes(pool, untouched));
    EXPECT_EQ(argument({-1, -1, -7}), "");
    EXPECT_TRUE(SameBytes(pool, untouched));
  }
}

TEST(WriteTest, K31_SeventyThousandTokens) {
  const PagedKvLayout layout = Layout({.dtype = DType::kI8,
                                       .layers = 1,
                                       .kv_heads = 1,
                                       .head_dim = 64,
                                       .block_tokens = 256,
                                       .scale_kind = ScaleKind::kPerToken});
  Random random(4);
  const Rows rows = MakeRows(layout, 70000, DType::kBF16, [&] { return random.Normal(); });
  TestPool pool(layout, 274, false);
  const std::vector<int32_t> ids = ShuffledIds(70000, random);
  const std::vector<int64_t> targets(ids.begin(), ids.end());
  WriteReport report;
  const auto backend = MakeTested();
  ASSERT_TRUE(backend->WriteKv(pool.view(), rows.view, {targets.data(), 70000}, &report).ok());
  EXPECT_EQ(report.tokens_written, 70000);
  TestPool want(layout, 274, false);
  ASSERT_TRUE(
      MakeReference()->WriteKv(want.view(), rows.view, {targets.data(), 70000}, nullptr).ok());
  EXPECT_TRUE(SameBytes(pool, want));
}

}  // namespace
}  // namespace quire::kernels::testing
