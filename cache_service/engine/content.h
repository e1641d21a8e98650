// The content of a block: token ids, and for inputs that are not tokens a digest and an offset.
#ifndef QUIRE_CACHE_SERVICE_ENGINE_CONTENT_H_
#define QUIRE_CACHE_SERVICE_ENGINE_CONTENT_H_

#include <compare>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "cache_service/engine/namespace_key.h"
#include "cache_service/engine/types.h"

namespace quire {

// Tokens [start, end) of a block stand for bytes [offset, ...) of the input with this digest.
struct DigestMark {
  uint32_t start = 0;
  uint32_t end = 0;
  uint32_t offset = 0;
  Digest digest{};

  friend bool operator==(const DigestMark&, const DigestMark&) = default;
};

// Up to one block of content; points into memory of others.
struct ContentView {
  const TokenId* tokens = nullptr;
  uint32_t count = 0;
  std::span<const DigestMark> marks;
};

// Four tokens from any address.
using TokenLanes __attribute__((vector_size(16))) = uint64_t;

inline TokenLanes LoadTokens(const TokenId* tokens) {
  TokenLanes lanes;
  std::memcpy(&lanes, tokens, sizeof(lanes));
  return lanes;
}

// Equality of whole blocks, 64 bytes at a time. Prompts lie where a message was parsed: at
// addresses of tokens, not of vectors.
inline bool SameTokens(const TokenId* a, const TokenId* b, uint32_t count) {
  constexpr uint32_t kPiece = 16;
  if (count % kPiece != 0) return std::memcmp(a, b, count * sizeof(TokenId)) == 0;
  for (; count > 0; count -= kPiece, a += kPiece, b += kPiece) {
    const TokenLanes different =
        ((LoadTokens(a) ^ LoadTokens(b)) | (LoadTokens(a + 4) ^ LoadTokens(b + 4))) |
        ((LoadTokens(a + 8) ^ LoadTokens(b + 8)) | (LoadTokens(a + 12) ^ LoadTokens(b + 12)));
    if ((different[0] | different[1]) != 0) return false;
  }
  return true;
}

// Leading tokens in which two contents agree, at most the shorter count.
uint32_t CommonLength(const ContentView& a, const ContentView& b);

// Both must be whole blocks.
bool SameContent(const ContentView& a, const ContentView& b);

// One position of an input that is not tokens: the id that stands there, the byte and the input.
struct ContentItem {
  TokenId token;
  uint64_t at;
  Digest digest;

  friend auto operator<=>(const ContentItem&, const ContentItem&) = default;
};

// What is at the position if it is no token of a prompt.
std::optional<ContentItem> MarkedItem(const ContentView& view, uint32_t position);

// Marks of tokens [first, first + count) of a sequence, whose ranges are in order and do not
// overlap.
std::vector<DigestMark> MarksOf(std::span<const DigestRange> digests, uint32_t first,
                                uint32_t count);

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_ENGINE_CONTENT_H_
