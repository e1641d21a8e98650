// K25..K28, K33: writing, copying and moving blocks, and the content checksum.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/cpu/copy.h"
#include "kernels/dtype.h"
#include "tests/kernels/testing/attention_case.h"

namespace quire::kernels::testing {
namespace {

constexpr DType kAllTypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kE4M3, DType::kI8};

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

bool SameBytes(const TestPool& a, const TestPool& b) {
  return std::memcmp(a.view().base, b.view().base, static_cast<size_t>(a.view().bytes)) == 0;
}

// Writes with the reference and on every target; the whole pools must agree.
void CheckWrite(const PagedKvLayout& layout, int64_t blocks, const Rows& rows,
                const std::vector<int64_t>& targets) {
  const TokenTargets to{targets.data(), static_cast<int64_t>(targets.size())};
  TestPool want(layout, blocks);
  WriteReport want_report;
  ASSERT_TRUE(MakeBackend("reference")->WriteKv(want.view(), rows.view, to, &want_report).ok());
  const auto backend = MakeBackend("cpu");
  ForEachTarget([&](const std::string& target) {
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
    ASSERT_TRUE(MakeBackend("cpu")->WriteKv(pool.view(), rows.view, to, nullptr).ok());
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
  for (const char* name : {"cpu", "reference"}) {
    const auto backend = MakeBackend(name);
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
  const auto backend = MakeBackend("cpu");
  ASSERT_TRUE(backend->WriteKv(pool.view(), rows.view, {targets.data(), 70000}, &report).ok());
  EXPECT_EQ(report.tokens_written, 70000);
  TestPool want(layout, 274, false);
  ASSERT_TRUE(MakeBackend("reference")
                  ->WriteKv(want.view(), rows.view, {targets.data(), 70000}, nullptr)
                  .ok());
  EXPECT_TRUE(SameBytes(pool, want));
}

TEST(MoveTest, K26_WriteThenGatherRoundTrip) {
  for (int32_t n = 2; n <= 256; n *= 2) {
    for (const int32_t head_dim : {64, 80, 96, 128, 192, 256}) {
      for (const DType dtype : kAllTypes) {
        LayoutParams params{.dtype = dtype,
                            .layers = 2,
                            .kv_heads = 1 + n % 3,
                            .head_dim = head_dim,
                            .block_tokens = n};
        if (ElementBytes(dtype) == 1) params.scale_kind = ScaleKind::kPerToken;
        params.preset = n % 4 == 0 ? LayoutPreset::kBlhncSplit : LayoutPreset::kBlkvh;
        const PagedKvLayout layout = Layout(params);
        TestPool from(layout, 3);
        Random random(5);
        from.FillSlot(2, n - 1, 1.0f, random);
        from.FillSlot(0, 0, 1.0f, random);
        TestPool to(layout, 3);
        const int32_t source[] = {2, 0};
        const int32_t destination[] = {0, 1};
        std::vector<std::byte> dense(static_cast<size_t>(2 * layout.content_bytes()));
        std::vector<std::byte> want(dense.size());
        const auto backend = MakeBackend("cpu", 1);
        ASSERT_TRUE(backend->GatherBlocks(from.view(), source, dense).ok());
        ASSERT_TRUE(MakeBackend("reference")->GatherBlocks(from.view(), source, want).ok());
        ASSERT_EQ(dense, want);
        ASSERT_TRUE(backend->ScatterBlocks(to.view(), destination, dense).ok());
        ASSERT_EQ(to.Bytes(0), from.Bytes(2));
        ASSERT_EQ(to.Bytes(1), from.Bytes(0));
      }
    }
  }
  for (const int32_t head_dim : {0, 46, 72, 112, 512}) {
    const auto refused = MakeLayout({.layers = 1, .kv_heads = 1, .head_dim = head_dim});
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.status().message().find("64, 80, 96, 128, 192, 256"), std::string::npos);
  }
}

TEST(MoveTest, ScatterRefusesRepeatedBlocksAndWrongSizes) {
  const PagedKvLayout layout = Layout({.layers = 1, .kv_heads = 1, .head_dim = 64});
  TestPool pool(layout, 4);
  std::vector<std::byte> dense(static_cast<size_t>(2 * layout.content_bytes()));
  const int32_t twice[] = {1, 1};
  const int32_t outside[] = {1, 4};
  for (const char* name : {"cpu", "reference"}) {
    const auto backend = MakeBackend(name);
    EXPECT_EQ(backend->ScatterBlocks(pool.view(), twice, dense).argument(), "ids");
    EXPECT_TRUE(backend->GatherBlocks(pool.view(), twice, dense).ok());
    EXPECT_EQ(backend->GatherBlocks(pool.view(), outside, dense).argument(), "ids");
    EXPECT_EQ(backend->GatherBlocks(pool.view(), {twice, 1}, dense).argument(), "bytes");
  }
}

PagedKvLayout CopyLayout() {
  return Layout({.dtype = DType::kI8,
                 .layers = 2,
                 .kv_heads = 2,
                 .head_dim = 64,
                 .block_tokens = 8,
                 .scale_kind = ScaleKind::kPerToken});
}

TestPool FilledPool(const PagedKvLayout& layout, int64_t blocks) {
  TestPool pool(layout, blocks);
  Random random(6);
  for (int64_t b = 0; b < blocks; ++b) pool.FillBlock(b, random);
  return pool;
}

void CheckCopies(const PagedKvLayout& layout, int64_t blocks,
                 const std::vector<CopyOrder>& orders) {
  TestPool want = FilledPool(layout, blocks);
  ASSERT_TRUE(MakeBackend("reference")->CopyBlocks(want.view(), orders).ok());
  TestPool got = FilledPool(layout, blocks);
  ASSERT_TRUE(MakeBackend("cpu", 4)->CopyBlocks(got.view(), orders).ok());
  EXPECT_TRUE(SameBytes(want, got));
}

TEST(CopyTest, K27_DisjointPairs) {
  std::vector<CopyOrder> orders;
  for (int32_t i = 0; i < 256; ++i) orders.push_back({2 * i, 2 * i + 1, 8});
  EXPECT_EQ(cpu::CutIntoWaves(orders).size(), 2u);
  CheckCopies(CopyLayout(), 512, orders);
}

TEST(CopyTest, K27_ChainsAndCyclesRunInListOrder) {
  TestPool pool = FilledPool(CopyLayout(), 6);
  const auto a = pool.Bytes(0);
  const auto e = pool.Bytes(4);
  const std::vector<CopyOrder> orders = {{0, 1, 8}, {1, 2, 8}, {4, 5, 8}, {5, 4, 8}, {3, 3, 8}};
  EXPECT_EQ(cpu::CutIntoWaves(orders), (std::vector<size_t>{0, 1, 3, 5}));
  ASSERT_TRUE(MakeBackend("cpu", 4)->CopyBlocks(pool.view(), orders).ok());
  EXPECT_EQ(pool.Bytes(1), a);
  EXPECT_EQ(pool.Bytes(2), a);
  EXPECT_EQ(pool.Bytes(4), e);
  EXPECT_EQ(pool.Bytes(5), e);
  CheckCopies(CopyLayout(), 6, orders);
}

TEST(CopyTest, K27_RandomListsEqualOneAfterAnother) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    Random random(seed);
    std::vector<CopyOrder> orders;
    for (int i = 0; i < 40; ++i) {
      orders.push_back({static_cast<int32_t>(random.Below(12)),
                        static_cast<int32_t>(random.Below(12)),
                        static_cast<int32_t>(random.Below(9))});
    }
    SCOPED_TRACE(seed);
    CheckCopies(CopyLayout(), 12, orders);
    const PagedKvLayout other = Layout({.layers = 3,
                                        .kv_heads = 2,
                                        .head_dim = 80,
                                        .block_tokens = 8,
                                        .preset = LayoutPreset::kBlkvh});
    CheckCopies(other, 12, orders);
  }
}

TEST(CopyTest, K27_PartialCopiesTakeTheFirstTokens) {
  TestPool pool(CopyLayout(), 2);
  Random random(7);
  pool.FillBlock(0, random);
  const CopyOrder order{0, 1, 3};
  ASSERT_TRUE(MakeBackend("cpu")->CopyBlocks(pool.view(), {&order, 1}).ok());
  const PagedKvLayout& l = pool.layout();
  for (int64_t slot = 0; slot < 8; ++slot) {
    const int64_t row = l.RowOffset(1, 1, 1, true, slot);
    EXPECT_EQ(IsPoison(DType::kI8, pool.view().base, row), slot >= 3) << slot;
    const int64_t scale = l.ScaleOffset(1, 1, 1, true, slot);
    EXPECT_EQ(IsPoison(DType::kF32, pool.view().base, scale), slot >= 3) << slot;
  }
}

TEST(CopyTest, K27_BadOrdersAreRefused) {
  TestPool pool(CopyLayout(), 2);
  const auto argument = [&](CopyOrder order) {
    return MakeBackend("cpu")->CopyBlocks(pool.view(), {&order, 1}).argument();
  };
  EXPECT_EQ(argument({-1, 1, 8}), "orders.source");
  EXPECT_EQ(argument({0, 2, 8}), "orders.destination");
  EXPECT_EQ(argument({0, 1, 9}), "orders.tokens");
  EXPECT_EQ(argument({0, 1, -1}), "orders.tokens");
}

std::vector<ChecksumSums> SumsOf(Backend& backend, const TestPool& pool,
                                 std::span<const ChecksumOrder> orders) {
  std::vector<ChecksumSums> sums(orders.size());
  const uint64_t seed = ChecksumSeed(pool.layout(), 0);
  EXPECT_TRUE(backend.ChecksumBlocks(pool.view(), seed, orders, sums).ok());
  return sums;
}

TEST(TransferTest, K28_OffloadAndOnboard) {
  const PagedKvLayout layout = CopyLayout();
  LayoutParams params{.dtype = DType::kI8,
                      .layers = 2,
                      .kv_heads = 2,
                      .head_dim = 64,
                      .block_tokens = 8,
                      .scale_kind = ScaleKind::kPerToken,
                      .preset = LayoutPreset::kBlkvh};
  TestPool device = FilledPool(layout, 512);
  TestPool host(Layout(params), 256);
  const auto backend = MakeBackend("cpu");
  Random random(8);
  const std::vector<int32_t> ids = ShuffledIds(512, random);
  std::vector<BlockPair> down, up;
  std::vector<ChecksumOrder> before, after, there;
  for (size_t i = 0; i < 256; ++i) {
    const auto at = static_cast<int32_t>(255 - i);
    down.push_back({ids[i], at});
    up.push_back({at, ids[i + 256]});
    before.push_back({ids[i], 0, 8});
    there.push_back({at, 0, 8});
    after.push_back({ids[i + 256], 0, 8});
  }
  ASSERT_TRUE(backend->TransferBlocks(device.view(), host.view(), down).ok());
  ASSERT_TRUE(backend->TransferBlocks(host.view(), device.view(), up).ok());
  const auto want = SumsOf(*backend, device, before);
  EXPECT_EQ(SumsOf(*backend, device, after), want);
  EXPECT_EQ(SumsOf(*backend, host, there), want);
}

TEST(TransferTest, K28_OverlapsAreRefused) {
  TestPool device = FilledPool(CopyLayout(), 4);
  TestPool host(CopyLayout(), 4);
  for (const char* name : {"cpu", "reference"}) {
    const auto backend = MakeBackend(name);
    const BlockPair repeated[] = {{0, 1}, {2, 1}};
    EXPECT_EQ(backend->TransferBlocks(device.view(), host.view(), repeated).argument(),
              "pairs.destination");
    const BlockPair chained[] = {{0, 1}, {1, 2}};
    EXPECT_EQ(backend->TransferBlocks(device.view(), device.view(), chained).argument(),
              "pairs.source");
    EXPECT_TRUE(backend->TransferBlocks(device.view(), host.view(), chained).ok());
    TestPool other(Layout({.layers = 2, .kv_heads = 2, .head_dim = 64}), 4);
    EXPECT_EQ(backend->TransferBlocks(device.view(), other.view(), chained).argument(),
              "destination.layout");
  }
}

TEST(ChecksumTest, K33_PublishedVector) {
  const PagedKvLayout layout =
      Layout({.layers = 2, .kv_heads = 2, .head_dim = 64, .block_tokens = 4});
  EXPECT_EQ(ChecksumSeed(layout, 0), 0xa8dd3edf3e712314u);
  TestPool pool(layout, 1);
  for (int64_t i = 0; i < layout.content_bytes(); ++i) {
    pool.view().base[i] = static_cast<std::byte>((131 * i + 7) % 256);
  }
  const ChecksumOrder order{0, 0, 3};
  for (const char* name : {"reference", "cpu"}) {
    const auto backend = MakeBackend(name);
    ForEachTarget([&](const std::string& target) {
      ChecksumSums sums;
      ASSERT_TRUE(backend->ChecksumBlocks(pool.view(), 0, {&order, 1}, {&sums, 1}).ok());
      EXPECT_EQ(sums[0], 0x693949de13ae0012u) << target;
      EXPECT_EQ(sums[1], 0x041b63a36e94c6dau) << target;
      const ChecksumSums bound = BindChecksum(sums, 0x0123456789abcdefu);
      EXPECT_EQ(bound[0], 0x86504abe2fb3c73bu);
      EXPECT_EQ(bound[1], 0x8bbd43276cf355f0u);
    });
  }
}

TEST(ChecksumTest, K33_EqualForEveryTargetPresetAndPiece) {
  for (const DType dtype : kAllTypes) {
    for (const int32_t head_dim : {80, 256}) {
      LayoutParams params{
          .dtype = dtype, .layers = 2, .kv_heads = 3, .head_dim = head_dim, .block_tokens = 8};
      if (ElementBytes(dtype) == 1) params.scale_kind = ScaleKind::kPerToken;
      TestPool a = FilledPool(Layout(params), 2);
      params.preset = LayoutPreset::kBlkvh;
      TestPool b = FilledPool(Layout(params), 2);
      const ChecksumOrder orders[] = {{1, 0, 8}, {1, 0, 3}, {1, 3, 8}, {1, 4, 4}};
      const auto want = SumsOf(*MakeBackend("reference"), a, orders);
      EXPECT_EQ(want[0][0], want[1][0] + want[2][0]);
      EXPECT_EQ(want[0][1], want[1][1] + want[2][1]);
      EXPECT_EQ(want[3], (ChecksumSums{0, 0}));
      ForEachTarget([&](const std::string& target) {
        EXPECT_EQ(SumsOf(*MakeBackend("cpu"), a, orders), want) << target;
        EXPECT_EQ(SumsOf(*MakeBackend("cpu"), b, orders), want) << target;
      });
    }
  }
}

TEST(ChecksumTest, K33_FindsWhatMoved) {
  const PagedKvLayout layout = CopyLayout();
  const auto backend = MakeBackend("cpu");
  const ChecksumOrder order{0, 0, 8};
  TestPool pool = FilledPool(layout, 2);
  const ChecksumSums good = SumsOf(*backend, pool, {&order, 1})[0];
  const auto swap = [&](int64_t a, int64_t b, int64_t bytes) {
    std::swap_ranges(pool.view().base + a, pool.view().base + a + bytes, pool.view().base + b);
  };
  const auto expect_found = [&](const char* what) {
    EXPECT_NE(SumsOf(*backend, pool, {&order, 1})[0], good) << what;
  };
  for (int64_t bit = 0; bit < layout.content_bytes() * 8; bit += 61) {
    pool.view().base[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    expect_found("one bit");
    pool.view().base[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
  }
  const int64_t k0 = layout.RowOffset(0, 1, 0, false, 2);
  swap(k0, layout.RowOffset(0, 1, 0, false, 5), 64);
  expect_found("two tokens");
  swap(k0, layout.RowOffset(0, 1, 0, false, 5), 64);
  const int64_t run = layout.head_stride;
  swap(layout.RowOffset(0, 0, 0, false, 0), layout.RowOffset(0, 0, 1, false, 0), run);
  expect_found("two heads");
  swap(layout.RowOffset(0, 0, 0, false, 0), layout.RowOffset(0, 0, 1, false, 0), run);
  swap(k0, layout.RowOffset(0, 1, 0, true, 2), 64);
  expect_found("K and V");
  swap(k0, layout.RowOffset(0, 1, 0, true, 2), 64);
  EXPECT_EQ(SumsOf(*backend, pool, {&order, 1})[0], good);
  swap(0, layout.block_bytes, layout.content_bytes());
  expect_found("two blocks");
  EXPECT_NE(BindChecksum(good, 1), BindChecksum(good, 2));
}

TEST(ChecksumTest, BadOrdersAreRefused) {
  TestPool pool(CopyLayout(), 2);
  const auto argument = [&](ChecksumOrder order, size_t room) {
    ChecksumSums sums;
    return MakeBackend("cpu")
        ->ChecksumBlocks(pool.view(), 0, {&order, 1}, {&sums, room})
        .argument();
  };
  EXPECT_EQ(argument({2, 0, 8}, 1), "orders.block");
  EXPECT_EQ(argument({0, 0, 9}, 1), "orders.slot_end");
  EXPECT_EQ(argument({0, 5, 4}, 1), "orders.slot_end");
  EXPECT_EQ(argument({0, 0, 8}, 0), "sums");
}

}  // namespace
}  // namespace quire::kernels::testing
