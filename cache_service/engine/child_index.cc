#include "cache_service/engine/child_index.h"

#include "cache_service/engine/prefix_tree.h"

namespace quire {

const ChildRef* ChildIndex::Entry(const Branch& branch, const ContentView& content) {
  if (branch.position >= content.count) return nullptr;
  const std::optional<ContentItem> item = MarkedItem(content, branch.position);
  if (!item.has_value()) return branch.plain.Find(content.tokens[branch.position]);
  if (branch.marked == nullptr) return nullptr;
  const auto found = branch.marked->find(*item);
  return found == branch.marked->end() ? nullptr : &found->second;
}

void ChildIndex::Add(Branch& branch, const ContentView& content, ChildRef child) {
  const std::optional<ContentItem> item = MarkedItem(content, branch.position);
  if (!item.has_value()) {
    branch.plain.Insert(content.tokens[branch.position], child);
    return;
  }
  if (branch.marked == nullptr) {
    branch.marked = std::make_unique<absl::btree_map<ContentItem, ChildRef>>();
  }
  branch.marked->emplace(*item, child);
}

void ChildIndex::Remove(Branch& branch, const ContentView& content) {
  const std::optional<ContentItem> item = MarkedItem(content, branch.position);
  if (item.has_value()) {
    branch.marked->erase(*item);
  } else {
    branch.plain.Erase(content.tokens[branch.position]);
  }
}

size_t ChildIndex::Size(const Branch& branch) {
  return branch.plain.size() + (branch.marked == nullptr ? 0 : branch.marked->size());
}

ChildRef ChildIndex::First(const Branch& branch) {
  return branch.plain.size() > 0 ? branch.plain.First() : branch.marked->begin()->second;
}

ChildRef ChildIndex::NewBranch(uint32_t position) {
  if (free_.empty()) {
    free_.push_back(kFirstBranch + static_cast<ChildRef>(branches_.size()));
    branches_.push_back({0, TokenTable(seed_), nullptr});
  }
  const ChildRef ref = free_.back();
  free_.pop_back();
  At(ref).position = position;
  return ref;
}

void ChildIndex::FreeBranch(ChildRef ref) {
  At(ref).plain.Clear();
  At(ref).marked = nullptr;
  free_.push_back(ref);
}

NodeId ChildIndex::Find(ChildRef top, const ContentView& content) const {
  while (IsBranch(top)) {
    const ChildRef* const entry = Entry(At(top), content);
    if (entry == nullptr) return kNoNode;
    top = *entry;
  }
  if (top == kNoNode || !SameContent(tree_.ContentOf(top), content)) return kNoNode;
  return top;
}

// A child that no other has more in common with `content` than. Positions between branches are not
// looked at on the way; what leaves the way there leaves it alike for all below.
NodeId ChildIndex::Nearest(ChildRef top, const ContentView& content) const {
  while (IsBranch(top)) {
    const ChildRef* const entry = Entry(At(top), content);
    top = entry != nullptr ? *entry : First(At(top));
  }
  return top;
}

ChildIndex::Way ChildIndex::WayTo(ChildRef top, const ContentView& content) const {
  Way way{{}, top, 0};
  // Mostly, where there are many, nothing begins like this.
  if (IsBranch(top) && At(top).position == 0 && Entry(At(top), content) == nullptr) return way;
  way.common = CommonLength(tree_.ContentOf(Nearest(top, content)), content);
  while (IsBranch(way.below) && At(way.below).position < way.common) {
    const Branch& branch = At(way.below);
    way.below = *Entry(branch, content);
    way.steps.push_back({&branch, way.below});
  }
  return way;
}

ChildRef ChildIndex::Insert(ChildRef top, NodeId child) {
  if (top == kNoNode) return child;
  const ContentView content = tree_.ContentOf(child);
  const ContentView nearest = tree_.ContentOf(Nearest(top, content));
  const uint32_t common = CommonLength(nearest, content);
  ChildRef* link = &top;
  while (IsBranch(*link) && At(*link).position < common) link = Entry(At(*link), content);
  if (!IsBranch(*link) || At(*link).position > common) {
    const ChildRef branch = NewBranch(common);
    Add(At(branch), nearest, *link);
    *link = branch;
  }
  Add(At(*link), content, child);
  return top;
}

ChildRef ChildIndex::Erase(ChildRef top, NodeId child) {
  if (top == child) return kNoNode;
  const ContentView content = tree_.ContentOf(child);
  ChildRef* link = &top;
  for (ChildRef* next = Entry(At(top), content); *next != child; next = Entry(At(*link), content)) {
    link = next;
  }
  const ChildRef ref = *link;
  Remove(At(ref), content);
  if (Size(At(ref)) == 1) {
    *link = First(At(ref));
    FreeBranch(ref);
  }
  return top;
}

void ChildIndex::Prefetch(ChildRef top, const TokenId* tokens) const {
  while (IsBranch(top)) {
    const Branch& branch = At(top);
    if (branch.plain.Prefetch(tokens[branch.position])) return;
    const ChildRef* const entry = branch.plain.Find(tokens[branch.position]);
    if (entry == nullptr) return;
    top = *entry;
  }
}

}  // namespace quire
