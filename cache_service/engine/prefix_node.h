// A node of the prefix tree: one block position with its content.
#ifndef QUIRE_CACHE_SERVICE_ENGINE_PREFIX_NODE_H_
#define QUIRE_CACHE_SERVICE_ENGINE_PREFIX_NODE_H_

#include <cstdint>

#include "cache_service/engine/block.h"
#include "cache_service/engine/token_table.h"

namespace quire {

// All zero is no node.
struct Node {
  NodeId parent;
  // The only child, or the branch of several; kNoNode: it is a leaf.
  ChildRef child;
  // Block index; a root has kRootDepth.
  uint32_t depth;
  // Block of group 0.
  uint32_t block;
  // Low bits of the serial of the sequence that sealed the content first.
  uint32_t sealer;
  // In use: children whose blocks cannot be given away. Free: the next free node.
  uint32_t blockers;
  // kNoWorker: public.
  WorkerSlot owner;
  uint16_t flags;

  bool leaf() const { return child == kNoNode; }

  bool Has(uint16_t flag) const { return (flags & flag) != 0; }

  void Set(uint16_t flag, bool on) {
    flags = static_cast<uint16_t>(on ? flags | flag : flags & ~flag);
  }
};

static_assert(sizeof(Node) == 28, "with the 64 bytes of its block less than 96");

inline constexpr uint32_t kRootDepth = 0xFFFFFFFFu;

// Node::flags
inline constexpr uint16_t kUsedNodeFlag = 1;
// Variants exist: see PrefixTree::variants_.
inline constexpr uint16_t kVariantsFlag = 2;
// Some of the content is not tokens: see PrefixTree::marks_.
inline constexpr uint16_t kMarksFlag = 4;

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_ENGINE_PREFIX_NODE_H_
