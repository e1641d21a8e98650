#include "cache_service/engine/content.h"

#include <algorithm>

namespace quire {
namespace {

uint32_t CommonTokens(const TokenId* a, const TokenId* b, uint32_t count) {
  return static_cast<uint32_t>(std::mismatch(a, a + count, b).first - a);
}

}  // namespace

std::optional<ContentItem> MarkedItem(const ContentView& view, uint32_t position) {
  for (const DigestMark& mark : view.marks) {
    if (mark.start > position || position >= mark.end) continue;
    const uint64_t at = uint64_t{mark.offset} + (position - mark.start);
    return ContentItem{view.tokens[position], at, mark.digest};
  }
  return std::nullopt;
}

uint32_t CommonLength(const ContentView& a, const ContentView& b) {
  const uint32_t tokens = CommonTokens(a.tokens, b.tokens, std::min(a.count, b.count));
  if (a.marks.empty() && b.marks.empty()) return tokens;
  for (uint32_t i = 0; i < tokens; ++i) {
    if (MarkedItem(a, i) != MarkedItem(b, i)) return i;
  }
  return tokens;
}

bool SameContent(const ContentView& a, const ContentView& b) {
  if (!SameTokens(a.tokens, b.tokens, a.count)) return false;
  return (a.marks.empty() && b.marks.empty()) || CommonLength(a, b) == a.count;
}

std::vector<DigestMark> MarksOf(std::span<const DigestRange> digests, uint32_t first,
                                uint32_t count) {
  std::vector<DigestMark> marks;
  auto range = std::partition_point(digests.begin(), digests.end(),
                                    [first](const DigestRange& r) { return r.end <= first; });
  for (; range != digests.end() && range->start < first + count; ++range) {
    const uint32_t start = std::max(range->start, first);
    const uint32_t end = std::min(range->end, first + count);
    marks.push_back({start - first, end - first, start - range->start, range->digest});
  }
  return marks;
}

}  // namespace quire
