#include "cache_service/engine/prefix_tree.h"

#include <algorithm>
#include <cstring>

namespace quire {
namespace {

// For roots, and node 0 that is none.
constexpr size_t kSpareNodes = 1024;

const std::vector<NodeVariant>& NoVariants() {
  static const std::vector<NodeVariant>* const none = new std::vector<NodeVariant>();
  return *none;
}

}  // namespace

PrefixTree::PrefixTree(uint32_t block_count, uint32_t block_tokens, uint32_t groups,
                       Journal* journal, uint64_t hash_seed)
    : journal_(journal),
      block_tokens_(block_tokens),
      groups_(groups),
      nodes_(size_t{block_count} + kSpareNodes),
      tokens_(nodes_.rows(), block_tokens),
      more_blocks_(nodes_.rows(), groups - 1),
      index_(*this, hash_seed) {}

void PrefixTree::Grow() {
  nodes_.Grow();
  tokens_.Grow();
  more_blocks_.Grow();
}

NodeId PrefixTree::NewNode() {
  NodeId node = free_head_;
  if (node != kNoNode) {
    journal_->Save(free_head_);
    free_head_ = nodes_[node].blockers;
  } else {
    if (fresh_ == nodes_.rows()) Grow();
    journal_->Save(fresh_);
    node = fresh_++;
  }
  journal_->Save(used_);
  ++used_;
  Mut(node) = Node{};
  nodes_[node].Set(kUsedNodeFlag, true);
  nodes_[node].block = Index(kNoBlock);
  for (uint32_t group = 1; group < groups_; ++group) SetBlock(node, group, kNoBlock);
  return node;
}

void PrefixTree::FreeNode(NodeId node) {
  Node& record = Mut(node);
  if (record.Has(kMarksFlag)) {
    if (journal_->active()) {
      journal_->OnRollback([this, node, marks = marks_[node]] { marks_[node] = marks; });
    }
    marks_.erase(node);
  }
  record = Node{};
  record.blockers = free_head_;
  journal_->Save(free_head_);
  free_head_ = node;
  journal_->Save(used_);
  --used_;
}

// --- Roots ---

NodeId PrefixTree::FindRoot(std::string_view key) const {
  const auto found = roots_.find(absl::string_view(key.data(), key.size()));
  return found == roots_.end() ? kNoNode : found->second;
}

NodeId PrefixTree::GetRoot(std::string_view key) {
  if (const NodeId root = FindRoot(key); root != kNoNode) return root;
  const NodeId root = NewNode();
  nodes_[root].depth = kRootDepth;
  roots_[std::string(key)] = root;
  root_info_[root].key = std::string(key);
  journal_->OnRollback([this, root, name = std::string(key)] {
    roots_.erase(name);
    root_info_.erase(root);
  });
  return root;
}

void PrefixTree::UseRoot(NodeId root) {
  ++root_info_.at(root).users;
  journal_->OnRollback([this, root] { --root_info_.at(root).users; });
}

void PrefixTree::ReleaseRoot(NodeId root) {
  RootInfo& info = root_info_.at(root);
  --info.users;
  journal_->OnRollback([this, root] { ++root_info_.at(root).users; });
  // While a step can still be undone the empty root stays; a later release or removal takes it.
  if (info.users > 0 || !nodes_[root].leaf() || journal_->active()) return;
  roots_.erase(info.key);
  root_info_.erase(root);
  FreeNode(root);
}

// --- Reading ---

ContentView PrefixTree::ContentOf(NodeId node) const {
  ContentView view{TokensOf(node), block_tokens_, {}};
  if (nodes_[node].Has(kMarksFlag)) view.marks = marks_.at(node);
  return view;
}

const std::vector<NodeVariant>& PrefixTree::Variants(NodeId node) const {
  return nodes_[node].Has(kVariantsFlag) ? variants_.at(node) : NoVariants();
}

const NodeVariant* PrefixTree::VariantOf(NodeId node, WorkerSlot worker) const {
  for (const NodeVariant& variant : Variants(node)) {
    if (variant.owner == worker) return &variant;
  }
  return nullptr;
}

// --- Changing ---

NodeId PrefixTree::AddChild(NodeId parent, const ContentView& content, WorkerSlot owner,
                            uint32_t sealer) {
  const NodeId node = NewNode();
  Node& record = nodes_[node];
  record.parent = parent;
  record.depth = nodes_[parent].depth + 1;
  record.owner = owner;
  record.sealer = sealer;
  journal_->SaveBytes(TokensOf(node), block_tokens_ * sizeof(TokenId));
  std::memcpy(TokensOf(node), content.tokens, block_tokens_ * sizeof(TokenId));
  if (!content.marks.empty()) {
    record.Set(kMarksFlag, true);
    marks_[node].assign(content.marks.begin(), content.marks.end());
    journal_->OnRollback([this, node] { marks_.erase(node); });
  }
  InsertChild(parent, node);
  return node;
}

void PrefixTree::InsertChild(NodeId parent, NodeId child) {
  Node& record = Mut(parent);
  record.child = index_.Insert(record.child, child);
  journal_->OnRollback([this, parent, child] { index_.Erase(nodes_[parent].child, child); });
}

void PrefixTree::EraseChild(NodeId parent, NodeId child) {
  Node& record = Mut(parent);
  record.child = index_.Erase(record.child, child);
  // Undone in reverse order, so the nodes and their tokens are back when this runs.
  journal_->OnRollback([this, parent, child] { index_.Insert(nodes_[parent].child, child); });
}

void PrefixTree::Remove(NodeId node) {
  const NodeId parent = nodes_[node].parent;
  EraseChild(parent, node);
  if (nodes_[node].Has(kVariantsFlag)) {
    SaveVariants(node);
    variants_.erase(node);
  }
  FreeNode(node);
  if (IsRoot(parent) && nodes_[parent].leaf() && root_info_.at(parent).users == 0 &&
      !journal_->active()) {
    roots_.erase(root_info_.at(parent).key);
    root_info_.erase(parent);
    FreeNode(parent);
  }
}

void PrefixTree::SetBlock(NodeId node, uint32_t group, BlockId block) {
  if (group == 0) {
    Mut(node).block = Index(block);
    return;
  }
  uint32_t& entry = more_blocks_.Row(node)[group - 1];
  journal_->Save(entry);
  entry = Index(block);
}

void PrefixTree::SetOwner(NodeId node, WorkerSlot owner, uint32_t sealer) {
  Mut(node).owner = owner;
  nodes_[node].sealer = sealer;
}

void PrefixTree::SaveVariants(NodeId node) {
  if (!journal_->active()) return;
  const auto found = variants_.find(node);
  std::vector<NodeVariant> before;
  if (found != variants_.end()) before = found->second;
  journal_->OnRollback([this, node, before] {
    if (before.empty()) {
      variants_.erase(node);
    } else {
      variants_[node] = before;
    }
  });
}

void PrefixTree::SetVariant(NodeId node, NodeVariant variant) {
  SaveVariants(node);
  std::vector<NodeVariant>& variants = variants_[node];
  std::erase_if(variants, [&](const NodeVariant& v) { return v.owner == variant.owner; });
  variants.push_back(std::move(variant));
  Mut(node).Set(kVariantsFlag, true);
}

void PrefixTree::RemoveVariant(NodeId node, WorkerSlot worker) {
  SaveVariants(node);
  std::vector<NodeVariant>& variants = variants_.at(node);
  std::erase_if(variants, [worker](const NodeVariant& v) { return v.owner == worker; });
  if (!variants.empty()) return;
  variants_.erase(node);
  Mut(node).Set(kVariantsFlag, false);
}

}  // namespace quire
