// Reading prefixes without side effects, and pins.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cache_service/engine/engine_core.h"

namespace quire {

// The root of the prefix's namespace, kNoNode if nothing is cached under it.
absl::StatusOr<NodeId> EngineCore::RootOf(const PrefixSelector& prefix) const {
  if (Error error = ValidateNamespace(prefix.namespace_parts); !error.ok()) return ToStatus(error);
  if (Error error = ValidateDigests(prefix.digests, prefix.tokens.size()); !error.ok()) {
    return ToStatus(error);
  }
  std::string fingerprint = prefix.model_fingerprint;
  if (fingerprint.empty()) {
    if (fingerprints_.size() > 1) {
      return ToStatus(InvalidArgument("model_fingerprint", "several are in use, name one"));
    }
    if (fingerprints_.empty()) return kNoNode;
    fingerprint = *fingerprints_.begin();
  }
  return tree_.FindRoot(NamespaceKey(fingerprint, options_.layout_tag, prefix.namespace_parts));
}

absl::StatusOr<uint32_t> EngineCore::PeekPrefix(const PrefixSelector& prefix) {
  ApplyDue();
  if (prefix.tokens.empty()) {
    return ToStatus(InvalidArgument("tokens", "a prompt has at least one token"));
  }
  if (prefix.tokens.size() > options_.max_sequence_tokens) {
    return ToStatus(InvalidArgument(
        "tokens", "longer than max_sequence_tokens",
        {{"given", prefix.tokens.size()}, {"limit", options_.max_sequence_tokens}}));
  }
  absl::StatusOr<NodeId> root = RootOf(prefix);
  if (!root.ok()) return root.status();
  const Hit hit = FindHit(*root, prefix.tokens, prefix.digests, kNoWorker, 0);
  return hit.Tokens(options_.block_tokens);
}

absl::StatusOr<PinResult> EngineCore::PinPrefix(const PrefixSelector& prefix,
                                                std::string_view owner, Duration duration) {
  ApplyDue();
  if (owner.empty() || owner.size() > 255) {
    return ToStatus(InvalidArgument("owner", "1 to 255 bytes",
                                    {{"given", owner.size()}, {"limit", 255}, {"unit", "bytes"}}));
  }
  if (duration <= Duration::zero() || duration > options_.max_pin) {
    return ToStatus(InvalidArgument(
        "duration", "must be positive and at most max_pin",
        {{"given", duration.count()}, {"limit", options_.max_pin.count()}, {"unit", "ns"}}));
  }
  if (prefix.tokens.size() > options_.max_sequence_tokens) {
    return ToStatus(InvalidArgument(
        "tokens", "longer than max_sequence_tokens",
        {{"given", prefix.tokens.size()}, {"limit", options_.max_sequence_tokens}}));
  }
  if (draining_) return ToStatus(MakeError(Reason::kDraining, "the server admits no pins"));
  if (pins_.size() >= options_.max_pins) {
    return ToStatus(LimitExceeded("pins", "too many", pins_.size() + 1, options_.max_pins));
  }
  absl::StatusOr<NodeId> root = RootOf(prefix);
  if (!root.ok()) return root.status();
  Hit hit;
  for (NodeId node = *root; node != kNoNode;) {
    const auto first = static_cast<uint32_t>(hit.path.size()) * options_.block_tokens;
    if (first + options_.block_tokens > prefix.tokens.size()) break;
    const std::vector<DigestMark> marks = MarksOf(prefix.digests, first, options_.block_tokens);
    node = tree_.FindChild(node, {prefix.tokens.data() + first, options_.block_tokens, marks});
    if (node != kNoNode && tree_.Get(node).owner == kNoWorker) {
      hit.path.push_back(node);
    } else {
      break;
    }
  }
  hit.whole_blocks = static_cast<uint32_t>(hit.path.size());
  if (groups_.has_windows) FitWindows(hit, kNoWorker);
  if (hit.whole_blocks == 0) {
    return ToStatus(InvalidArgument("tokens",
                                    "no whole block of this prefix is cached and public; what is "
                                    "committed is pending until its step completes"));
  }
  Pin pin{absl::StrCat("pin-", next_pin_), std::string(owner), AddSaturating(now_, duration), {}};
  uint64_t idle = 0;
  VisitHitBlocks(hit, kNoWorker, [&](uint32_t, uint32_t, BlockId block) {
    if (block == kNoBlock) return;
    pin.blocks.push_back(block);
    if (pool_.AvailableTo(block, kNoWorker)) ++idle;
  });
  const uint64_t open = pool_.OpenFree() + pool_.OpenEvictable();
  if (idle + claimed_ > open) {
    ++counters_.shortages;
    return ToStatus(MakeError(Reason::kPoolExhausted, "the blocks are promised to sequences",
                              {{"needed", idle},
                               {"free", pool_.OpenFree()},
                               {"evictable", pool_.OpenEvictable()},
                               {"claimed_by_others", claimed_}}));
  }
  ++next_pin_;
  for (const BlockId block : pin.blocks) Hold(block);
  next_pin_deadline_ = std::min(next_pin_deadline_, pin.deadline);
  PinResult result{pin.id, hit.whole_blocks * options_.block_tokens};
  pins_.emplace(result.pin_id, std::move(pin));
  return result;
}

absl::Status EngineCore::UnpinPrefix(std::string_view pin_id) {
  ApplyDue();
  const auto found = pins_.find(std::string(pin_id));
  if (found == pins_.end()) {
    return ToStatus(PinNotFound(pin_id));
  }
  EndPin(found);
  FitClaims();
  return absl::OkStatus();
}

// From the tail to the root, like a table.
void EngineCore::EndPin(std::map<std::string, Pin>::iterator pin) {
  std::vector<BlockId>& blocks = pin->second.blocks;
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) Unhold(*block);
  pins_.erase(pin);
}

// A pin keeps content resident; what was taken out of the tree it would only keep from being used.
void EngineCore::UnpinRemoved() {
  for (auto pin = pins_.begin(); pin != pins_.end();) {
    std::vector<BlockId>& blocks = pin->second.blocks;
    for (auto i = blocks.size(); i-- > 0;) {
      if (pool_.Get(blocks[i]).node != kNoNode) continue;
      Unhold(blocks[i]);
      blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(i));
    }
    pin = blocks.empty() ? pins_.erase(pin) : std::next(pin);
  }
}

std::vector<PinView> EngineCore::ListPins() {
  ApplyDue();
  std::vector<PinView> views;
  for (const auto& [id, pin] : pins_) {
    views.push_back({id, pin.owner, static_cast<uint32_t>(pin.blocks.size()), pin.deadline - now_});
  }
  return views;
}

}  // namespace quire
