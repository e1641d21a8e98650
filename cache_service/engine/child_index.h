// The children of tree nodes that have several, by content.
//
// A radix tree within one block position (D. R. Morrison, PATRICIA, J. ACM 15, 1968): a branch
// names the first position at which the contents below it differ, and has a table by the token
// there. An exact match reads one slot a branch and compares one content; the longest partial match
// is found on the same way. Where two contents hold the same token for different inputs (digests),
// they are told apart by an ordered map beside the table.
//
// A ChildRef is a node or a branch; the children of a node are one ChildRef. Freed branches are
// reused last in, first out, so undoing changes in reverse order gives back the same branches. Not
// thread-safe.
#ifndef QUIRE_CACHE_SERVICE_ENGINE_CHILD_INDEX_H_
#define QUIRE_CACHE_SERVICE_ENGINE_CHILD_INDEX_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/inlined_vector.h"
#include "cache_service/engine/block.h"
#include "cache_service/engine/content.h"
#include "cache_service/engine/token_table.h"
#include "cache_service/engine/types.h"

namespace quire {

class PrefixTree;

class ChildIndex {
 public:
  // Contents are read from the tree, which must have them while a child is in the index.
  ChildIndex(const PrefixTree& tree, uint64_t seed) : tree_(tree), seed_(seed) {}

  static bool IsBranch(ChildRef ref) { return ref >= kFirstBranch; }

  // The child with this content, a whole block, or kNoNode.
  NodeId Find(ChildRef top, const ContentView& content) const;

  // Both return what stands for the children afterwards: kNoNode if none is left. No two children
  // have the same content.
  ChildRef Insert(ChildRef top, NodeId child);
  ChildRef Erase(ChildRef top, NodeId child);

  // visit(child) returns true to stop. Returns whether it did.
  template <typename Visit>
  bool VisitUntil(ChildRef top, Visit visit) const;

  // visit(child, common) by falling common length with `content`, while it is positive; returns
  // true to stop. Content may be shorter than a block.
  template <typename Visit>
  void VisitPartial(ChildRef top, const ContentView& content, Visit visit) const;

  // Asks the processor for what a search for content with these tokens will read.
  void Prefetch(ChildRef top, const TokenId* tokens) const;

 private:
  // Above all nodes: ids of blocks end at 2^31 - 2, and a branch needs two nodes of its own.
  static constexpr ChildRef kFirstBranch = ChildRef{3} << 30;

  struct Branch {
    uint32_t position = 0;
    TokenTable plain;
    // Of contents that do not hold tokens of a prompt there.
    std::unique_ptr<absl::btree_map<ContentItem, ChildRef>> marked;
  };

  // The branches above what `content` has most in common with, and what lies below them.
  struct Way {
    struct Step {
      const Branch* branch;
      ChildRef taken;
    };

    absl::InlinedVector<Step, 8> steps;
    ChildRef below;
    uint32_t common;
  };

  Branch& At(ChildRef ref) { return branches_[ref - kFirstBranch]; }

  const Branch& At(ChildRef ref) const { return branches_[ref - kFirstBranch]; }

  static const ChildRef* Entry(const Branch& branch, const ContentView& content);

  static ChildRef* Entry(Branch& branch, const ContentView& content) {
    return const_cast<ChildRef*>(Entry(static_cast<const Branch&>(branch), content));
  }

  static void Add(Branch& branch, const ContentView& content, ChildRef child);
  static void Remove(Branch& branch, const ContentView& content);
  static size_t Size(const Branch& branch);
  static ChildRef First(const Branch& branch);
  NodeId Nearest(ChildRef top, const ContentView& content) const;
  Way WayTo(ChildRef top, const ContentView& content) const;
  ChildRef NewBranch(uint32_t position);
  void FreeBranch(ChildRef ref);

  template <typename Visit>
  static bool VisitEntries(const Branch& branch, Visit visit) {
    if (branch.plain.VisitUntil(visit)) return true;
    if (branch.marked == nullptr) return false;
    for (const auto& [item, child] : *branch.marked) {
      if (visit(child)) return true;
    }
    return false;
  }

  const PrefixTree& tree_;
  uint64_t seed_;
  // At the same address while they grow.
  std::deque<Branch> branches_;
  std::vector<ChildRef> free_;
};

template <typename Visit>
bool ChildIndex::VisitUntil(ChildRef top, Visit visit) const {
  if (top == kNoNode) return false;
  if (!IsBranch(top)) return visit(NodeId{top});
  return VisitEntries(At(top), [&](ChildRef entry) { return VisitUntil(entry, visit); });
}

template <typename Visit>
void ChildIndex::VisitPartial(ChildRef top, const ContentView& content, Visit visit) const {
  if (top == kNoNode || content.count == 0) return;
  const Way way = WayTo(top, content);
  if (way.common == 0) return;
  if (VisitUntil(way.below, [&](NodeId child) { return visit(child, way.common); })) return;
  for (size_t i = way.steps.size(); i-- > 0;) {
    const auto& [branch, taken] = way.steps[i];
    const uint32_t common = branch->position;
    if (common == 0) return;
    const auto visit_child = [&](NodeId child) { return visit(child, common); };
    const bool stopped = VisitEntries(*branch, [&, taken = taken](ChildRef entry) {
      return entry != taken && VisitUntil(entry, visit_child);
    });
    if (stopped) return;
  }
}

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_ENGINE_CHILD_INDEX_H_
