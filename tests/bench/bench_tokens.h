// Token ids of the benchmarks.
#ifndef QUIRE_TESTS_BENCH_BENCH_TOKENS_H_
#define QUIRE_TESTS_BENCH_BENCH_TOKENS_H_

#include <numeric>
#include <vector>

#include "cache_service/engine/types.h"

namespace quire::bench {

inline constexpr uint32_t kBlockTokens = 16;

// Tokens that only this (family, count) has.
inline std::vector<TokenId> Tokens(uint32_t family, size_t count) {
  std::vector<TokenId> tokens(count);
  std::iota(tokens.begin(), tokens.end(), family * 1'000'003u);
  return tokens;
}

}  // namespace quire::bench

#endif  // QUIRE_TESTS_BENCH_BENCH_TOKENS_H_
