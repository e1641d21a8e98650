// What keeps window blocks: the leaves behind whose hit position they lie (E1).
//
// A window block may not be evicted while a leaf needs it. It does not even count as evictable
// while a node needs it that will stay when all that may be evicted below it is gone: one that is
// closed (held, fenced or pending) and has no firm child. For the worker that fences such a node
// itself this is stricter than needed, until its step is complete; without full attention also for
// others, where somebody fences what is below. Both numbers are kept per node and group. Not
// thread-safe.
#ifndef QUIRE_CACHE_SERVICE_ENGINE_WINDOW_PROTECTION_H_
#define QUIRE_CACHE_SERVICE_ENGINE_WINDOW_PROTECTION_H_

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "cache_service/engine/block_pool.h"
#include "cache_service/engine/journal.h"
#include "cache_service/engine/pool_groups.h"
#include "cache_service/engine/prefix_tree.h"

namespace quire {

class WindowProtection {
 public:
  // All must outlive it.
  WindowProtection(const PoolGroups& groups, BlockPool* pool, const PrefixTree& tree,
                   Journal* journal)
      : groups_(groups), pool_(*pool), tree_(tree), journal_(*journal) {}

  // Brings what `node` protects up to date with whether it is a leaf and stays.
  void LeafChanged(NodeId node);
  // The node goes: it protects nothing any more.
  void ForgetLeaf(NodeId node);
  // Whether the node is closed or firm may have changed.
  void ClosedChanged(NodeId node);
  // A block was put into the tree as the one of its node and group.
  void BlockPlaced(NodeId node, uint32_t group);
  // A leaf needs the node's block of this window group.
  bool Needed(NodeId node, uint32_t group) const;

 private:
  friend class InvariantChecker;

  // Leaves, and nodes that will stay as leaves, whose window holds the node's block of a group.
  struct Protectors {
    uint32_t leaves = 0;
    uint32_t staying = 0;
  };

  static uint64_t Key(NodeId node, uint32_t group) { return uint64_t{node} << 16 | group; }

  bool IsLeaf(NodeId node) const;
  // It stays when all that may be evicted below it is gone.
  bool StaysAsLeaf(NodeId node) const;
  bool Firm(NodeId node) const;
  bool HasBlockWith(NodeId node, uint16_t flag) const;
  void SetFirm(NodeId node, bool firm);
  void AddFirmChildren(NodeId node, uint32_t delta);
  void SetLeafState(NodeId node, uint8_t state);
  void Protect(NodeId leaf, int leaves, int staying);
  void AddProtectors(NodeId node, uint32_t group, int leaves, int staying);

  const PoolGroups& groups_;
  BlockPool& pool_;
  const PrefixTree& tree_;
  Journal& journal_;
  // Nodes that keep their parent from becoming a leaf, and how many children of each node are such.
  absl::flat_hash_set<NodeId> firm_nodes_;
  absl::flat_hash_map<NodeId, uint32_t> firm_children_;
  absl::flat_hash_map<uint64_t, Protectors> protectors_;
  absl::flat_hash_map<NodeId, uint8_t> leaf_state_;
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_ENGINE_WINDOW_PROTECTION_H_
