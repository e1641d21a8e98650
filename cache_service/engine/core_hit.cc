// What a prompt finds in the tree: token-exact, cut to what every window group accepts (P4, E5,
// E7).
#include <algorithm>

#include "cache_service/engine/engine_core.h"
#include "cache_service/engine/fault.h"

namespace quire {
namespace {

constexpr NodeId kPrefetchedNodes = 8;
// A part of a block is worth copying, but not worth looking for among thousands of blocks that
// others have not completed.
constexpr uint32_t kMostCandidates = 1024;

}  // namespace

bool EngineCore::Visible(NodeId node, WorkerSlot worker) const {
  const Node& record = tree_.Get(node);
  return record.owner == kNoWorker || record.owner == worker || Injected(Fault::kPendingShown) ||
         (record.Has(kVariantsFlag) && tree_.VariantOf(node, worker) != nullptr);
}

BlockId EngineCore::VisibleBlock(NodeId node, uint32_t group, WorkerSlot worker) const {
  const Node& record = tree_.Get(node);
  if (record.owner == kNoWorker || record.owner == worker || Injected(Fault::kPendingShown)) {
    const BlockId block = tree_.BlockOf(node, group);
    if (block != kNoBlock || !record.Has(kVariantsFlag)) return block;
  }
  const NodeVariant* variant = tree_.VariantOf(node, worker);
  return variant == nullptr ? kNoBlock : variant->blocks[group];
}

EngineCore::Hit EngineCore::FindHit(NodeId root, std::span<const TokenId> tokens,
                                    std::span<const DigestRange> digests, WorkerSlot worker,
                                    uint32_t recompute_tail) const {
  Hit hit;
  if (root == kNoNode) return hit;
  const uint32_t block_tokens = options_.block_tokens;
  const auto length = static_cast<uint32_t>(tokens.size());
  std::vector<DigestMark> marks;
  const auto content = [&](uint32_t first, uint32_t count) {
    ContentView view{tokens.data() + first, count, {}};
    if (!digests.empty()) {
      marks = MarksOf(digests, first, count);
      view.marks = marks;
    }
    return view;
  };
  hit.path.resize(length / block_tokens);
  hit.blocks.resize(length / block_tokens);
  hit.plain = groups() == 1 && !groups_.has_windows;
  NodeId node = root;
  uint32_t matched = 0;
  size_t found = 0;
  while (found < hit.path.size()) {
    if (digests.empty()) {
      const size_t followed = tree_.FollowOnlyChildren(
          node, tokens.data() + matched, worker, std::span(hit.path).subspan(found),
          std::span(hit.blocks).subspan(found), [&](NodeId child) {
            // Children of children mostly lie side by side, and so do their blocks.
            tree_.PrefetchNear(child + kPrefetchedNodes);
            pool_.Prefetch(BlockId{tree_.Get(child).block});
          });
      found += followed;
      matched += static_cast<uint32_t>(followed) * block_tokens;
      if (followed > 0) node = hit.path[found - 1];
      if (found == hit.path.size()) break;
    }
    const NodeId child = tree_.FindChild(node, content(matched, block_tokens));
    if (child == kNoNode) break;
    const Node& record = tree_.Get(child);
    const bool own = record.owner == kNoWorker || record.owner == worker;
    if (!own && !Visible(child, worker)) break;
    hit.plain = hit.plain && own;
    hit.path[found] = child;
    hit.blocks[found] = BlockId{record.block};
    node = child;
    ++found;
    matched += block_tokens;
  }
  hit.path.resize(found);
  hit.blocks.resize(found);
  if (groups_.has_windows) {
    CutToWindows(root, content, worker, recompute_tail > 0 ? length : length - 1, hit);
    const uint32_t longest = hit.Tokens(block_tokens);
    if (recompute_tail == 0) return hit;
    const uint32_t kept = longest > recompute_tail ? longest - recompute_tail : 0;
    CutToWindows(root, content, worker, std::min(kept, length - 1), hit);
    return hit;
  }
  NodeId partial = kNoNode;
  const ContentView rest = content(matched, std::min(block_tokens, length - matched));
  uint32_t candidates = 0;
  tree_.VisitPartial(node, rest, [&](NodeId child, uint32_t common) {
    if (!Visible(child, worker)) return ++candidates == kMostCandidates;
    partial = child;
    matched += common;
    return true;
  });
  // The last token is always computed, because its logits are wanted.
  uint32_t reuse = matched > recompute_tail ? matched - recompute_tail : 0;
  reuse = std::min(reuse, length - 1);
  hit.whole_blocks = reuse / block_tokens;
  hit.partial_tokens = reuse % block_tokens;
  if (hit.partial_tokens > 0) {
    hit.source = hit.whole_blocks < hit.path.size() ? hit.path[hit.whole_blocks] : partial;
  }
  hit.Shorten(hit.whole_blocks);
  return hit;
}

// The longest start of the path, with part of a block that continues it, of at most `limit` tokens
// that every window group accepts.
template <typename Content>
void EngineCore::CutToWindows(NodeId root, Content content, WorkerSlot worker, uint32_t limit,
                              Hit& hit) const {
  const uint32_t block_tokens = options_.block_tokens;
  hit.Shorten(std::min(static_cast<uint32_t>(hit.path.size()), limit / block_tokens));
  for (uint32_t missing = 0;; hit.Shorten(missing)) {
    const uint32_t first = hit.whole_blocks * block_tokens;
    const NodeId parent = hit.path.empty() ? root : hit.path.back();
    hit.source = kNoNode;
    hit.partial_tokens = 0;
    uint32_t candidates = 0;
    const auto use = [&](NodeId child, uint32_t common) {
      for (uint32_t group = 0; group < groups(); ++group) {
        if (VisibleBlock(child, group, worker) == kNoBlock) {
          return ++candidates == kMostCandidates;
        }
      }
      hit.source = child;
      hit.partial_tokens = common;
      return true;
    };
    tree_.VisitPartial(parent, content(first, std::min(limit - first, block_tokens - 1)), use);
    if (WindowsResident(hit, worker, missing)) return;
    hit.source = kNoNode;
    hit.partial_tokens = 0;
    if (WindowsResident(hit, worker, missing)) return;
  }
}

// False if a block that the window behind the hit touches is not there; names the last such block.
bool EngineCore::WindowsResident(const Hit& hit, WorkerSlot worker, uint32_t& missing_block) const {
  const uint32_t length = hit.Tokens(options_.block_tokens);
  for (uint32_t group = 0; group < groups(); ++group) {
    if (!IsWindow(group)) continue;
    const uint32_t first = groups_.FirstNeeded(group, length);
    for (uint32_t i = hit.whole_blocks; i-- > first;) {
      if (VisibleBlock(hit.path[i], group, worker) != kNoBlock) continue;
      missing_block = i;
      return false;
    }
  }
  return true;
}

// Shortens a hit of whole blocks to the longest one that every window group accepts.
void EngineCore::FitWindows(Hit& hit, WorkerSlot worker) const {
  // A hit beyond the missing block and not past its window would need it too.
  for (uint32_t missing = 0; !WindowsResident(hit, worker, missing);) hit.Shorten(missing);
}

}  // namespace quire
