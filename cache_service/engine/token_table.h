// Children by one token: open addressing with linear probing.
//
// Eight bytes a slot and one cache line for most look-ups, and no memory of its own for a few
// children, which a generic map of a library does not give. The order of a visit depends on the
// seed and on what was done, on nothing else, so runs can be repeated. The hash is XXH3
// (xxhash.com); a secret seed keeps prompts from being made to collide. Not thread-safe.
#ifndef QUIRE_CACHE_SERVICE_ENGINE_TOKEN_TABLE_H_
#define QUIRE_CACHE_SERVICE_ENGINE_TOKEN_TABLE_H_

#include <array>
#include <cstdint>

#include "cache_service/engine/types.h"
#include "cache_service/engine/zeroed_array.h"

namespace quire {

// A node, or a branch of the index (child_index.h); never 0.
using ChildRef = uint32_t;

class TokenTable {
 public:
  explicit TokenTable(uint64_t seed) : seed_(seed) {}

  uint32_t size() const { return size_; }

  // Null: there is none. Valid until the next change.
  ChildRef* Find(TokenId token) {
    return const_cast<ChildRef*>(static_cast<const TokenTable&>(*this).Find(token));
  }

  const ChildRef* Find(TokenId token) const;

  // There must be none yet.
  void Insert(TokenId token, ChildRef child);
  // There must be one.
  void Erase(TokenId token);

  void Clear();

  // The child that a visit meets first.
  ChildRef First() const;

  // visit(child) returns true to stop. Returns whether it did.
  template <typename Visit>
  bool VisitUntil(Visit visit) const {
    const Slot* const slots = data();
    for (size_t i = 0; i < capacity(); ++i) {
      if (slots[i].child != 0 && visit(slots[i].child)) return true;
    }
    return false;
  }

  // Asks the processor for the slot of `token`; false: the table is small and mostly at hand.
  bool Prefetch(TokenId token) const;

 private:
  struct Slot {
    TokenId token;
    ChildRef child;
  };

  // Where up to three children are, most branches.
  static constexpr size_t kOwnSlots = 4;

  size_t capacity() const { return slots_.size() == 0 ? kOwnSlots : slots_.size(); }

  Slot* data() { return slots_.size() == 0 ? own_.data() : slots_.data(); }

  const Slot* data() const { return slots_.size() == 0 ? own_.data() : slots_.data(); }

  size_t Home(TokenId token) const;
  // Index of the slot that holds the token or would.
  size_t Seek(TokenId token) const;
  void Resize(size_t capacity);

  uint64_t seed_;
  std::array<Slot, kOwnSlots> own_{};
  ZeroedArray<Slot> slots_;
  uint32_t size_ = 0;
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_ENGINE_TOKEN_TABLE_H_
