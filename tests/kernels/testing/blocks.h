// Whole blocks for tests of writing, moving and summing: filled pools, comparison, checksums.
#ifndef QUIRE_TESTS_KERNELS_TESTING_BLOCKS_H_
#define QUIRE_TESTS_KERNELS_TESTING_BLOCKS_H_

#include <span>
#include <vector>

#include "tests/kernels/testing/pool_fixture.h"

namespace quire::kernels::testing {

inline constexpr DType kAllTypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kE4M3,
                                      DType::kI8};

// Two layers and heads, 8 tokens, int8 with scales per token.
PagedKvLayout CopyLayout();

// Every slot of every block filled, the same for the same shape.
TestPool FilledPool(const PagedKvLayout& layout, int64_t blocks);

bool SameBytes(const TestPool& a, const TestPool& b);

std::vector<ChecksumSums> SumsOf(Backend& backend, const TestPool& pool,
                                 std::span<const ChecksumOrder> orders);

}  // namespace quire::kernels::testing

#endif  // QUIRE_TESTS_KERNELS_TESTING_BLOCKS_H_
