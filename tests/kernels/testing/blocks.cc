#include "tests/kernels/testing/blocks.h"

#include <gtest/gtest.h>

#include <cstring>

namespace quire::kernels::testing {

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

bool SameBytes(const TestPool& a, const TestPool& b) {
  return std::memcmp(a.view().base, b.view().base, static_cast<size_t>(a.view().bytes)) == 0;
}

std::vector<ChecksumSums> SumsOf(Backend& backend, const TestPool& pool,
                                 std::span<const ChecksumOrder> orders) {
  std::vector<ChecksumSums> sums(orders.size());
  const uint64_t seed = ChecksumSeed(pool.layout(), 0);
  EXPECT_TRUE(backend.ChecksumBlocks(pool.view(), seed, orders, sums).ok());
  return sums;
}

}  // namespace quire::kernels::testing
