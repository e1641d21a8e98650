#include "cache_service/engine/content.h"

#include <algorithm>
#include <cstring>

namespace quire {
namespace {

const DigestMark* MarkAt(const ContentView& view, uint32_t position) {
  for (const DigestMark& mark : view.marks) {
    if (mark.start <= position && position < mark.end) return &mark;
  }
  return nullptr;
}

// Order of one position behind equal token ids.
int CompareMarks(const ContentView& a, const ContentView& b, uint32_t position) {
  const DigestMark* mark_a = MarkAt(a, position);
  const DigestMark* mark_b = MarkAt(b, position);
  if (mark_a == nullptr || mark_b == nullptr) return (mark_a != nullptr) - (mark_b != nullptr);
  const int order =
      std::memcmp(mark_a->digest.data(), mark_b->digest.data(), mark_a->digest.size());
  if (order != 0) return order;
  const uint64_t at_a = uint64_t{mark_a->offset} + (position - mark_a->start);
  const uint64_t at_b = uint64_t{mark_b->offset} + (position - mark_b->start);
  return (at_a > at_b) - (at_a < at_b);
}

uint32_t CommonTokens(const TokenId* a, const TokenId* b, uint32_t count) {
  return static_cast<uint32_t>(std::mismatch(a, a + count, b).first - a);
}

}  // namespace

uint32_t CommonLength(const ContentView& a, const ContentView& b) {
  const uint32_t tokens = CommonTokens(a.tokens, b.tokens, std::min(a.count, b.count));
  if (a.marks.empty() && b.marks.empty()) return tokens;
  for (uint32_t i = 0; i < tokens; ++i) {
    if (CompareMarks(a, b, i) != 0) return i;
  }
  return tokens;
}

int CompareContent(const ContentView& a, const ContentView& b) {
  if (a.marks.empty() && b.marks.empty()) {
    return std::memcmp(a.tokens, b.tokens, a.count * sizeof(TokenId));
  }
  const uint32_t common = CommonLength(a, b);
  if (common == a.count) return 0;
  const int order = std::memcmp(a.tokens + common, b.tokens + common, sizeof(TokenId));
  return order != 0 ? order : CompareMarks(a, b, common);
}

std::vector<DigestMark> MarksOf(std::span<const DigestRange> digests, uint32_t first,
                                uint32_t count) {
  std::vector<DigestMark> marks;
  for (const DigestRange& range : digests) {
    const uint32_t start = std::max(range.start, first);
    const uint32_t end = std::min(range.end, first + count);
    if (start >= end) continue;
    marks.push_back({start - first, end - first, start - range.start, range.digest});
  }
  return marks;
}

}  // namespace quire
