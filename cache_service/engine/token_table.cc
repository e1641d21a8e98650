#include "cache_service/engine/token_table.h"

#include <utility>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace quire {
namespace {

constexpr size_t kSmallCapacity = 1024;

}  // namespace

// The capacity is a power of two.
size_t TokenTable::Home(TokenId token) const {
  return XXH3_64bits_withSeed(&token, sizeof(token), seed_) & (capacity() - 1);
}

size_t TokenTable::Seek(TokenId token) const {
  const Slot* const slots = data();
  const size_t mask = capacity() - 1;
  size_t at = Home(token);
  while (slots[at].child != 0 && slots[at].token != token) at = (at + 1) & mask;
  return at;
}

const ChildRef* TokenTable::Find(TokenId token) const {
  const Slot& slot = data()[Seek(token)];
  return slot.child == 0 ? nullptr : &slot.child;
}

void TokenTable::Insert(TokenId token, ChildRef child) {
  // At most three quarters full.
  if ((size_ + size_t{1}) * 4 > capacity() * 3) Resize(capacity() * 2);
  data()[Seek(token)] = {token, child};
  ++size_;
}

// Slots behind the gap move up if their way from home leads over it, so that no marker of what was
// erased is needed (Knuth, The Art of Computer Programming 3, algorithm 6.4R).
void TokenTable::Erase(TokenId token) {
  Slot* const slots = data();
  const size_t mask = capacity() - 1;
  size_t gap = Seek(token);
  for (size_t at = (gap + 1) & mask; slots[at].child != 0; at = (at + 1) & mask) {
    const size_t way = (at - Home(slots[at].token)) & mask;
    if (way < ((at - gap) & mask)) continue;
    slots[gap] = slots[at];
    gap = at;
  }
  slots[gap] = {};
  --size_;
  if (capacity() > kOwnSlots && size_t{size_} * 8 < capacity()) Resize(capacity() / 2);
}

void TokenTable::Clear() {
  slots_ = {};
  own_ = {};
  size_ = 0;
}

ChildRef TokenTable::First() const {
  ChildRef first = 0;
  VisitUntil([&](ChildRef child) { return (first = child) != 0; });
  return first;
}

bool TokenTable::Prefetch(TokenId token) const {
  if (capacity() <= kSmallCapacity) return false;
  // The slots behind it too, which may be in the next line.
  const size_t home = Home(token);
  __builtin_prefetch(&slots_[home], 1);
  __builtin_prefetch(&slots_[(home + 4) & (slots_.size() - 1)], 1);
  return true;
}

void TokenTable::Resize(size_t capacity) {
  const std::array<Slot, kOwnSlots> own = std::exchange(own_, {});
  const ZeroedArray<Slot> before =
      std::exchange(slots_, ZeroedArray<Slot>(capacity > kOwnSlots ? capacity : 0));
  const auto move = [this](const Slot& slot) {
    if (slot.child != 0) data()[Seek(slot.token)] = slot;
  };
  for (const Slot& slot : own) move(slot);
  for (size_t i = 0; i < before.size(); ++i) move(before[i]);
}

}  // namespace quire
