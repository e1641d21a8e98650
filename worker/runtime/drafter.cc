#include "worker/runtime/drafter.h"

#include <algorithm>

namespace quire::runtime {

std::vector<TokenId> LookUpDrafts(std::span<const TokenId> tokens, uint32_t count) {
  if (tokens.size() < 3 || count == 0) return {};
  const TokenId before = tokens[tokens.size() - 2];
  const TokenId last = tokens.back();
  for (size_t i = tokens.size() - 2; i > 0; --i) {
    if (tokens[i] != last || tokens[i - 1] != before) continue;
    const size_t end = std::min(tokens.size(), i + 1 + count);
    return {tokens.begin() + static_cast<std::ptrdiff_t>(i + 1),
            tokens.begin() + static_cast<std::ptrdiff_t>(end)};
  }
  return {};
}

}  // namespace quire::runtime
