#include "cache_service/engine/token_table.h"

#include <algorithm>
#include <utility>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace quire {
namespace {

// One cache line.
constexpr size_t kLeastCapacity = 8;
constexpr size_t kSmallCapacity = 1024;

}  // namespace

// The capacity is a power of two.
size_t TokenTable::Home(TokenId token) const {
  return XXH3_64bits_withSeed(&token, sizeof(token), seed_) & (slots_.size() - 1);
}

size_t TokenTable::Seek(TokenId token) const {
  size_t at = Home(token);
  while (slots_[at].child != 0 && slots_[at].token != token) at = (at + 1) & (slots_.size() - 1);
  return at;
}

const ChildRef* TokenTable::Find(TokenId token) const {
  if (size_ == 0) return nullptr;
  const Slot& slot = slots_[Seek(token)];
  return slot.child == 0 ? nullptr : &slot.child;
}

void TokenTable::Insert(TokenId token, ChildRef child) {
  // At most three quarters full.
  if (slots_.size() == 0) {
    Resize(kLeastCapacity);
  } else if ((size_ + size_t{1}) * 4 > slots_.size() * 3) {
    Resize(slots_.size() * 2);
  }
  slots_[Seek(token)] = {token, child};
  ++size_;
}

// Slots behind the gap move up if their way from home leads over it, so that no marker of what was
// erased is needed (Knuth, The Art of Computer Programming 3, algorithm 6.4R).
void TokenTable::Erase(TokenId token) {
  const size_t mask = slots_.size() - 1;
  size_t gap = Seek(token);
  for (size_t at = (gap + 1) & mask; slots_[at].child != 0; at = (at + 1) & mask) {
    const size_t way = (at - Home(slots_[at].token)) & mask;
    if (way < ((at - gap) & mask)) continue;
    slots_[gap] = slots_[at];
    gap = at;
  }
  slots_[gap] = {};
  --size_;
  if (slots_.size() > kLeastCapacity && size_t{size_} * 8 < slots_.size()) {
    Resize(slots_.size() / 2);
  }
}

void TokenTable::Clear() {
  if (slots_.size() > kLeastCapacity) slots_ = {};
  std::fill_n(slots_.data(), slots_.size(), Slot{});
  size_ = 0;
}

ChildRef TokenTable::First() const {
  ChildRef first = 0;
  VisitUntil([&](ChildRef child) { return (first = child) != 0; });
  return first;
}

bool TokenTable::Prefetch(TokenId token) const {
  if (slots_.size() <= kSmallCapacity) return false;
  // The slots behind it too, which may be in the next line.
  const size_t home = Home(token);
  __builtin_prefetch(&slots_[home], 1);
  __builtin_prefetch(&slots_[(home + 4) & (slots_.size() - 1)], 1);
  return true;
}

void TokenTable::Resize(size_t capacity) {
  const ZeroedArray<Slot> before = std::exchange(slots_, ZeroedArray<Slot>(capacity));
  for (size_t i = 0; i < before.size(); ++i) {
    if (before[i].child != 0) slots_[Seek(before[i].token)] = before[i];
  }
}

}  // namespace quire
