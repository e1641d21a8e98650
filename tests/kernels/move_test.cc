// K26..K28: gathering, copying and transferring blocks.
#include <gtest/gtest.h>

#include "kernels/cpu/copy.h"
#include "tests/kernels/testing/attention_case.h"
#include "tests/kernels/testing/blocks.h"

namespace quire::kernels::testing {
namespace {

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
        const auto backend = MakeTested(1);
        ASSERT_TRUE(backend->GatherBlocks(from.view(), source, dense).ok());
        ASSERT_TRUE(MakeReference()->GatherBlocks(from.view(), source, want).ok());
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
  for (const bool reference : {false, true}) {
    const auto backend = reference ? MakeReference() : MakeTested();
    EXPECT_EQ(backend->ScatterBlocks(pool.view(), twice, dense).argument(), "ids");
    EXPECT_TRUE(backend->GatherBlocks(pool.view(), twice, dense).ok());
    EXPECT_EQ(backend->GatherBlocks(pool.view(), outside, dense).argument(), "ids");
    EXPECT_EQ(backend->GatherBlocks(pool.view(), {twice, 1}, dense).argument(), "destination");
  }
}

TEST(MoveTest, DenseMemoryNeedsNoAlignment) {
  const TestPool from = FilledPool(CopyLayout(), 3);
  TestPool to(CopyLayout(), 3);
  const auto bytes = static_cast<size_t>(2 * from.layout().content_bytes());
  const int32_t ids[] = {2, 0};
  for (const size_t odd : {size_t{1}, size_t{8}}) {
    std::vector<std::byte> memory(bytes + odd);
    const auto dense = std::span(memory).subspan(odd);
    const auto backend = MakeTested();
    ASSERT_TRUE(backend->GatherBlocks(from.view(), ids, dense).ok());
    EXPECT_TRUE(
        std::equal(dense.begin(), dense.end() - std::ssize(dense) / 2, from.Bytes(2).begin()));
    ASSERT_TRUE(backend->ScatterBlocks(to.view(), ids, dense).ok());
    EXPECT_EQ(to.Bytes(2), from.Bytes(2));
    EXPECT_EQ(to.Bytes(0), from.Bytes(0));
  }
}

void CheckCopies(const PagedKvLayout& layout, int64_t blocks,
                 const std::vector<CopyOrder>& orders) {
  TestPool want = FilledPool(layout, blocks);
  ASSERT_TRUE(MakeReference()->CopyBlocks(want.view(), orders).ok());
  TestPool got = FilledPool(layout, blocks);
  ASSERT_TRUE(MakeTested(4)->CopyBlocks(got.view(), orders).ok());
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
  ASSERT_TRUE(MakeTested(4)->CopyBlocks(pool.view(), orders).ok());
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
  ASSERT_TRUE(MakeTested()->CopyBlocks(pool.view(), {&order, 1}).ok());
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
    return MakeTested()->CopyBlocks(pool.view(), {&order, 1}).argument();
  };
  EXPECT_EQ(argument({-1, 1, 8}), "orders.source");
  EXPECT_EQ(argument({0, 2, 8}), "orders.destination");
  EXPECT_EQ(argument({0, 1, 9}), "orders.tokens");
  EXPECT_EQ(argument({0, 1, -1}), "orders.tokens");
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
  const auto backend = MakeTested();
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
  for (const bool reference : {false, true}) {
    const auto backend = reference ? MakeReference() : MakeTested();
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

}  // namespace
}  // namespace quire::kernels::testing
