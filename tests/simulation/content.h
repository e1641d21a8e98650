// What a slot must hold: a token together with everything before it.
//
// A content is a 64-bit digest of namespace, positions, tokens and digests so far; two slots may
// share bytes exactly where their contents are equal.
#ifndef QUIRE_TESTS_SIMULATION_CONTENT_H_
#define QUIRE_TESTS_SIMULATION_CONTENT_H_

#include <cstdint>
#include <vector>

#include "cache_service/engine/types.h"
#include "tests/simulation/random.h"

namespace quire::simulation {

// 0: nothing was ever written.
using ContentId = uint64_t;

constexpr ContentId RootContent(uint32_t name_space) { return Mix(0x51AB1EULL + name_space); }

// `input` distinguishes what is behind a placeholder token; 0 for a plain token.
constexpr ContentId NextContent(ContentId before, TokenId token, uint64_t input = 0) {
  return Mix(before * 0x9E3779B97F4A7C15u + token + Mix(input + 1));
}

// Tokens of a sequence with their contents. Kernels that were launched keep what they were launched
// with, so a text that others use is only appended to.
struct Text {
  ContentId root = 0;
  std::vector<TokenId> tokens;
  std::vector<ContentId> contents;

  uint32_t size() const { return static_cast<uint32_t>(tokens.size()); }

  ContentId last() const { return contents.empty() ? root : contents.back(); }

  void Append(TokenId token, uint64_t input = 0) {
    contents.push_back(NextContent(last(), token, input));
    tokens.push_back(token);
  }

  // The first `count` tokens.
  Text Prefix(uint32_t count) const {
    return {root,
            {tokens.begin(), tokens.begin() + count},
            {contents.begin(), contents.begin() + count}};
  }
};

}  // namespace quire::simulation

#endif  // QUIRE_TESTS_SIMULATION_CONTENT_H_
