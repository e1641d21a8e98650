// K33: the content checksum.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/kernels/testing/attention_case.h"
#include "tests/kernels/testing/blocks.h"

namespace quire::kernels::testing {
namespace {

TEST(ChecksumTest, K33_PublishedVector) {
  const PagedKvLayout layout =
      Layout({.layers = 2, .kv_heads = 2, .head_dim = 64, .block_tokens = 4});
  EXPECT_EQ(ChecksumSeed(layout, 0), 0xa8dd3edf3e712314u);
  TestPool pool(layout, 1);
  for (int64_t i = 0; i < layout.content_bytes(); ++i) {
    pool.view().base[i] = static_cast<std::byte>((131 * i + 7) % 256);
  }
  const ChecksumOrder order{0, 0, 3};
  for (const bool reference : {false, true}) {
    const auto backend = reference ? MakeReference() : MakeTested();
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
      const auto want = SumsOf(*MakeReference(), a, orders);
      EXPECT_EQ(want[0][0], want[1][0] + want[2][0]);
      EXPECT_EQ(want[0][1], want[1][1] + want[2][1]);
      EXPECT_EQ(want[3], (ChecksumSums{0, 0}));
      ForEachTarget([&](const std::string& target) {
        EXPECT_EQ(SumsOf(*MakeTested(), a, orders), want) << target;
        EXPECT_EQ(SumsOf(*MakeTested(), b, orders), want) << target;
      });
    }
  }
}

TEST(ChecksumTest, K33_FindsWhatMoved) {
  const PagedKvLayout layout = CopyLayout();
  const auto backend = MakeTested();
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
    return MakeTested()->ChecksumBlocks(pool.view(), 0, {&order, 1}, {&sums, room}).argument();
  };
  EXPECT_EQ(argument({2, 0, 8}, 1), "orders.block");
  EXPECT_EQ(argument({0, 0, 9}, 1), "orders.slot_end");
  EXPECT_EQ(argument({0, 5, 4}, 1), "orders.slot_end");
  EXPECT_EQ(argument({0, 0, 8}, 0), "sums");
}

}  // namespace
}  // namespace quire::kernels::testing
