// Pool memory of tags instead of keys and values, and the copy executor over it.
//
// A tag names what a slot must hold: the namespace, position and token of its content together with
// everything before it, and the layer group. Two sequences have equal tags exactly where they may
// share bytes, so a block handed out twice, a copy out of order or a wrong remap shows as a wrong
// tag. Not thread-safe.
#ifndef QUIRE_TESTS_SUPPORT_TAGGED_MEMORY_H_
#define QUIRE_TESTS_SUPPORT_TAGGED_MEMORY_H_

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "cache_service/engine/step.h"

namespace quire::testing {

// Identity of a token with everything before it; 0 is "nothing was ever written".
using ContentId = uint64_t;

// Numbers contents exactly: equal ids if and only if equal namespaces, tokens and digests.
class ContentIds {
 public:
  ContentId Root(const std::string& namespace_key);
  // `extra` distinguishes inputs that are not tokens; "" for plain tokens.
  ContentId Next(ContentId before, TokenId token, const std::string& extra = {});

 private:
  std::map<std::string, ContentId> roots_;
  std::map<std::tuple<ContentId, TokenId, std::string>, ContentId> nodes_;
  ContentId next_ = 1;
};

struct SlotTag {
  ContentId content = 0;
  uint32_t group = 0;

  friend bool operator==(const SlotTag&, const SlotTag&) = default;
};

class TaggedMemory {
 public:
  TaggedMemory(uint32_t block_count, uint32_t block_tokens)
      : block_tokens_(block_tokens), slots_(size_t{block_count} * block_tokens) {}

  uint32_t block_tokens() const { return block_tokens_; }

  ContentIds& contents() { return contents_; }

  const SlotTag& At(BlockId block, uint32_t slot) const { return slots_.at(IndexOf(block, slot)); }

  void Write(BlockId block, uint32_t slot, const SlotTag& tag) {
    slots_.at(IndexOf(block, slot)) = tag;
  }

  void Execute(const CopyOrder& order);

 private:
  size_t IndexOf(BlockId block, uint32_t slot) const {
    return size_t{Index(block)} * block_tokens_ + slot;
  }

  uint32_t block_tokens_;
  std::vector<SlotTag> slots_;
  ContentIds contents_;
};

}  // namespace quire::testing

#endif  // QUIRE_TESTS_SUPPORT_TAGGED_MEMORY_H_
