#include "cache_service/memory/pool_layout.h"

#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace quire {
namespace {

using testing::IsInvalid;
using testing::IsOk;

ModelShape Shape() {
  ModelShape shape;
  shape.dtype = kernels::DType::kF16;
  shape.kv_heads = 2;
  shape.head_dim = 64;
  shape.layer_windows = {0, 0, 0, 0};
  shape.block_tokens = 16;
  return shape;
}

TEST(PoolLayoutTest, BlockHoldsAllLayersOfItsGroup) {
  const auto layout = MakePoolLayout(Shape());
  ASSERT_THAT(layout, IsOk());
  ASSERT_EQ(layout->groups.size(), 1u);
  // 4 layers x 2 heads x (K, V) x 16 tokens x 64 x 2 bytes.
  EXPECT_EQ(layout->block_bytes, 4u * 2 * 2 * 16 * 64 * 2);
  EXPECT_EQ(layout->PaddingBytes(0), 0u);
  EXPECT_EQ(layout->layout_id, layout->group_layouts[0].id);
}

TEST(PoolLayoutTest, GroupsOfAllWindowsHaveEqualBytes) {
  ModelShape shape = Shape();
  shape.layer_windows = {0, 1024, 1024, 1024};
  const auto layout = MakePoolLayout(shape);
  ASSERT_THAT(layout, IsOk());
  EXPECT_EQ(layout->groups.size(), 4u);
  for (const auto& group : layout->group_layouts) {
    EXPECT_EQ(static_cast<uint64_t>(group.block_bytes), layout->block_bytes);
  }
}

TEST(PoolLayoutTest, GivenGroupsOfUnequalLayersReportTheirPadding) {
  ModelShape shape = Shape();
  shape.layer_windows.clear();
  shape.groups = {{0, {0, 1, 2}}, {64, {3}}};
  const auto layout = MakePoolLayout(shape);
  ASSERT_THAT(layout, IsOk());
  EXPECT_EQ(layout->PaddingBytes(0), 0u);
  EXPECT_EQ(layout->PaddingBytes(1), layout->block_bytes / 3 * 2);
}

TEST(PoolLayoutTest, WithoutBytesOnlyGroupsRemain) {
  ModelShape shape;
  const auto layout = MakePoolLayout(shape);
  ASSERT_THAT(layout, IsOk());
  EXPECT_EQ(layout->groups.size(), 1u);
  EXPECT_EQ(layout->block_bytes, 0u);
  EXPECT_TRUE(layout->group_layouts.empty());
}

TEST(PoolLayoutTest, AnyDifferenceIsAnotherLayout) {
  const auto base = MakePoolLayout(Shape());
  std::vector<ModelShape> others(4, Shape());
  others[0].dtype = kernels::DType::kBF16;
  others[1].kv_heads = 4;
  others[2].layer_windows = {0, 0, 0, 64};
  others[3].block_tokens = 32;
  for (const ModelShape& shape : others) {
    const auto other = MakePoolLayout(shape);
    ASSERT_THAT(other, IsOk());
    EXPECT_FALSE(SameLayout(*base, *other)) << other->Describe();
  }
  EXPECT_TRUE(SameLayout(*base, *MakePoolLayout(Shape())));
}

TEST(PoolLayoutTest, ImpossibleShapesNameTheirField) {
  const auto with = [](auto change) {
    ModelShape shape = Shape();
    change(shape);
    return MakePoolLayout(shape);
  };
  EXPECT_THAT(with([](ModelShape& s) { s.head_dim = 0xFFFFFFFF; }), IsInvalid("layout.head_dim"));
  EXPECT_THAT(with([](ModelShape& s) { s.kv_heads = 0; }), IsInvalid("layout.kv_heads"));
  EXPECT_THAT(with([](ModelShape& s) { s.head_dim = 65; }), IsInvalid("layout.head_dim"));
  EXPECT_THAT(with([](ModelShape& s) { s.block_tokens = 512; }), IsInvalid("layout.block_tokens"));
  EXPECT_THAT(with([](ModelShape& s) { s.layer_windows.clear(); }),
              IsInvalid("layout.layer_windows"));
  EXPECT_THAT(with([](ModelShape& s) { s.groups = {{0, {1}}}; }), IsInvalid("layout.groups"));
}

TEST(PoolLayoutTest, GivenGroupsAreChecked) {
  ModelShape shape = Shape();
  shape.layer_windows.clear();
  shape.groups = {{0, {0, 1}}, {64, {1}}};
  EXPECT_THAT(MakePoolLayout(shape), IsInvalid("layout.groups[1].layers"));
  shape.groups = {{0, {}}};
  EXPECT_THAT(MakePoolLayout(shape), IsInvalid("layout.groups[0].layers"));
  shape.groups = {{0, {5000}}};
  EXPECT_THAT(MakePoolLayout(shape), IsInvalid("layout.groups[0].layers"));
}

}  // namespace
}  // namespace quire
