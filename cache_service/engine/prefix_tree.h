// Prefix tree: an index of sealed blocks by content.
//
// A node stands for one block position with its content; the path from its root (one per namespace)
// spells all tokens before it. Content is compared token by token, there is no hash that could
// collide. A node with one child points at it; several are found through an index (child_index.h).
//
// A node carries one block per layer group: of the tree at large (owner kNoWorker), or of the one
// worker whose step with them is not complete. Blocks of further workers that computed the same
// content meanwhile are kept beside it as variants. Not thread-safe; CacheEngine locks.
#ifndef QUIRE_CACHE_SERVICE_ENGINE_PREFIX_TREE_H_
#define QUIRE_CACHE_SERVICE_ENGINE_PREFIX_TREE_H_

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/attributes.h"
#include "absl/container/flat_hash_map.h"
#include "cache_service/engine/block.h"
#include "cache_service/engine/child_index.h"
#include "cache_service/engine/content.h"
#include "cache_service/engine/growing_array.h"
#include "cache_service/engine/journal.h"
#include "cache_service/engine/prefix_node.h"
#include "cache_service/engine/types.h"

namespace quire {

// Blocks of one worker beside those in the node.
struct NodeVariant {
  WorkerSlot owner = kNoWorker;
  uint32_t sealer = 0;
  std::vector<BlockId> blocks;
};

class PrefixTree {
 public:
  PrefixTree(uint32_t block_count, uint32_t block_tokens, uint32_t groups, Journal* journal,
             uint64_t hash_seed = 0);
  PrefixTree(const PrefixTree&) = delete;
  PrefixTree& operator=(const PrefixTree&) = delete;

  // --- Roots ---
  NodeId FindRoot(std::string_view key) const;
  NodeId GetRoot(std::string_view key);

  uint64_t roots() const { return roots_.size(); }

  // Removes a root without children that no sequence uses.
  void UseRoot(NodeId root);
  void ReleaseRoot(NodeId root);

  // --- Reading ---
  const Node& Get(NodeId node) const { return nodes_[node]; }

  bool IsRoot(NodeId node) const { return nodes_[node].depth == kRootDepth; }

  ContentView ContentOf(NodeId node) const;

  // Asks the processor for what a look at `node` will read; harmless if there is no such node.
  ABSL_ATTRIBUTE_ALWAYS_INLINE void PrefetchNear(NodeId node) const {
    __builtin_prefetch(nodes_.first() + node);
    __builtin_prefetch(tokens_.first() + size_t{node} * block_tokens_);
  }

  // The same for what RemovePlainTip will read of the node, and soon after, when all below it is
  // gone, of the child of a root above it: nodes of one prompt mostly lie in a row.
  ABSL_ATTRIBUTE_ALWAYS_INLINE void PrefetchTip(NodeId node) const {
    __builtin_prefetch(nodes_.first() + node, 1);
  }

  ABSL_ATTRIBUTE_ALWAYS_INLINE void PrefetchTop(NodeId node) const {
    // Its tokens first; they name the place in the index, which is asked for when they are there.
    constexpr uint32_t kFar = 8;
    constexpr uint32_t kNear = 2;
    const uint32_t depth = nodes_[node].depth;
    if ((depth != kFar && depth != kNear) || node <= depth) return;
    const NodeId top = node - depth;
    if (depth == kFar) {
      __builtin_prefetch(tokens_.first() + size_t{top} * block_tokens_);
    } else {
      index_.Prefetch(nodes_[nodes_[top].parent].child, TokensOf(top));
    }
  }

  NodeId FindChild(NodeId parent, const ContentView& content) const {
    const Node& node = nodes_[parent];
    if (node.leaf()) return kNoNode;
    if (ChildIndex::IsBranch(node.child) || nodes_[node.child].Has(kMarksFlag) ||
        !content.marks.empty()) {
      return index_.Find(node.child, content);
    }
    return SameTokens(TokensOf(node.child), content.tokens, block_tokens_) ? node.child : kNoNode;
  }

  // Goes down from `parent` while the only child is plain, spells the next block of `tokens` and
  // belongs to everybody or to `worker`; at most blocks.size() times. Writes the nodes and their
  // blocks of group 0, and calls touch(node) on the way. Returns how many there are.
  template <typename Touch>
  size_t FollowOnlyChildren(NodeId parent, const TokenId* tokens, WorkerSlot worker,
                            std::span<NodeId> path, std::span<BlockId> blocks, Touch touch) const;

  // visit(child, common) by falling common length with `content`, while it is positive; returns
  // true to stop. Content may be shorter than a block.
  template <typename Visit>
  void VisitPartial(NodeId parent, const ContentView& content, Visit visit) const {
    index_.VisitPartial(nodes_[parent].child, content, visit);
  }

  template <typename Visit>
  void VisitChildren(NodeId parent, Visit visit) const {
    index_.VisitUntil(nodes_[parent].child, [&](NodeId child) {
      visit(child);
      return false;
    });
  }

  BlockId BlockOf(NodeId node, uint32_t group) const {
    return BlockId{group == 0 ? nodes_[node].block : more_blocks_.Row(node)[group - 1]};
  }

  // Of any group, not of a variant.
  bool HasOwnBlocks(NodeId node) const {
    for (uint32_t group = 0; group < groups_; ++group) {
      if (BlockOf(node, group) != kNoBlock) return true;
    }
    return false;
  }

  bool HasBlocks(NodeId node) const {
    return nodes_[node].Has(kVariantsFlag) || HasOwnBlocks(node);
  }

  // Index of the variant of `worker`, or null.
  const NodeVariant* VariantOf(NodeId node, WorkerSlot worker) const;

  uint64_t nodes() const { return used_; }

  NodeId end() const { return fresh_; }

  // --- Changing ---
  NodeId AddChild(NodeId parent, const ContentView& content, WorkerSlot owner, uint32_t sealer);
  // The node must have no child.
  void Remove(NodeId node);
  void SetBlock(NodeId node, uint32_t group, BlockId block);
  void SetOwner(NodeId node, WorkerSlot owner, uint32_t sealer);

  // Returns the new number of blockers.
  uint32_t AddBlockers(NodeId node, int delta) {
    uint32_t& blockers = Mut(node).blockers;
    blockers = static_cast<uint32_t>(static_cast<int>(blockers) + delta);
    return blockers;
  }

  // As AddBlockers, while no journal runs.
  uint32_t AddBlockersPlainly(NodeId node, int delta) {
    uint32_t& blockers = nodes_[node].blockers;
    return blockers = static_cast<uint32_t>(static_cast<int>(blockers) + delta);
  }

  // Removes a node while no journal runs, if it is a leaf that can go without a trace: nothing
  // beside it stands for its content, and its parent, if no root, has a block of group 0 and stays.
  bool RemovePlainTip(NodeId node) {
    Node* const nodes = nodes_.first();
    const size_t rows = nodes_.first_rows();
    if (node >= rows || nodes[node].parent >= rows) return false;
    Node& record = nodes[node];
    Node& parent = nodes[record.parent];
    const bool stays = parent.depth == kRootDepth ? ChildIndex::IsBranch(parent.child)
                                                  : BlockId{parent.block} != kNoBlock;
    if (record.flags != kUsedNodeFlag || !record.leaf() || parent.Has(kVariantsFlag) || !stays) {
      return false;
    }
    if (ChildIndex::IsBranch(parent.child)) {
      EraseChild(record.parent, node);
    } else {
      parent.child = kNoNode;
    }
    record = Node{};
    record.blockers = free_head_;
    free_head_ = node;
    --used_;
    return true;
  }

  void SetVariant(NodeId node, NodeVariant variant);
  void RemoveVariant(NodeId node, WorkerSlot worker);
  const std::vector<NodeVariant>& Variants(NodeId node) const;

 private:
  Node& Mut(NodeId node) {
    Node& record = nodes_[node];
    journal_->Save(record);
    return record;
  }

  NodeId NewNode();
  void FreeNode(NodeId node);
  void Grow();
  void InsertChild(NodeId parent, NodeId child);
  void EraseChild(NodeId parent, NodeId child);
  void SaveVariants(NodeId node);

  TokenId* TokensOf(NodeId node) { return tokens_.Row(node); }

  const TokenId* TokensOf(NodeId node) const { return tokens_.Row(node); }

  Journal* journal_;
  uint32_t block_tokens_;
  uint32_t groups_;
  // The tree can outgrow the pool: roots, and paths to window blocks whose own blocks are gone.
  GrowingArray<Node> nodes_;
  GrowingArray<TokenId> tokens_;
  // Blocks of the groups from 1 on.
  GrowingArray<uint32_t> more_blocks_;
  NodeId fresh_ = 1;
  NodeId free_head_ = kNoNode;
  uint64_t used_ = 0;
  absl::flat_hash_map<std::string, NodeId> roots_;

  struct RootInfo {
    std::string key;
    uint32_t users = 0;
  };

  absl::flat_hash_map<NodeId, RootInfo> root_info_;
  ChildIndex index_;
  absl::flat_hash_map<NodeId, std::vector<NodeVariant>> variants_;
  absl::flat_hash_map<NodeId, std::vector<DigestMark>> marks_;
};

template <typename Touch>
size_t PrefixTree::FollowOnlyChildren(NodeId parent, const TokenId* tokens, WorkerSlot worker,
                                      std::span<NodeId> path, std::span<BlockId> blocks,
                                      Touch touch) const {
  const size_t width = block_tokens_;
  const size_t rows = nodes_.first_rows();
  if (parent >= rows) return 0;
  const Node* const nodes = nodes_.first();
  const TokenId* const known = tokens_.first();
  const Node* node = nodes + parent;
  size_t found = 0;
  for (; found < blocks.size() && !node->leaf(); ++found, tokens += width) {
    const NodeId child = node->child;
    if (child >= rows) break;
    node = nodes + child;
    if (node->Has(kMarksFlag) || (node->owner != kNoWorker && node->owner != worker)) break;
    if (!SameTokens(known + child * width, tokens, block_tokens_)) break;
    touch(child);
    path[found] = child;
    blocks[found] = BlockId{node->block};
  }
  return found;
}

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_ENGINE_PREFIX_TREE_H_
