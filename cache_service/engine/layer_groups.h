// Layer groups: planning groups of equal bytes, and window arithmetic. Pure functions.
#ifndef QUIRE_CACHE_SERVICE_ENGINE_LAYER_GROUPS_H_
#define QUIRE_CACHE_SERVICE_ENGINE_LAYER_GROUPS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

namespace quire {

// Layers that share one attention window. window_tokens 0: full attention; w > 0: a token sees
// itself and the w - 1 before it.
struct GroupSpec {
  uint32_t window_tokens = 0;
  // Model layers in block order; may be empty where only ids are counted.
  std::vector<uint32_t> layers;

  bool is_window() const { return window_tokens > 0; }

  friend bool operator==(const GroupSpec&, const GroupSpec&) = default;
};

struct GroupPlan {
  std::vector<GroupSpec> groups;
  // Layers per block; the block of every group has room for this many.
  uint32_t layers_per_block = 0;
  // Per group: layers_per_block minus the layers it has, i.e. the padding in layers.
  std::vector<uint32_t> padding_layers;
};

// Splits the layers of each window into groups of equal layer count, so that a block of every group
// has the same bytes. Chooses the fewest groups whose padding is at most 1/16 of the layers, and
// for these the least padding; one window gives one group. layer_windows[i] is the window of model
// layer i (0: full). Full groups come first, then rising windows; layers keep their order. Errors:
// INVALID_ARGUMENT for no layers or more than 1,024.
absl::StatusOr<GroupPlan> PlanGroups(std::span<const uint32_t> layer_windows);

// Index of the first block that the window behind `length` touches: the blocks a sequence of
// `length` committed tokens needs to compute its next token. 0 for full attention.
// With slack, blocks stay until they are that many tokens out of the window.
uint32_t FirstNeededBlock(uint32_t window_tokens, uint32_t length, uint32_t block_tokens,
                          uint32_t slack_tokens = 0);

// Longest hit, in blocks, that one window group accepts: the largest h such that every block the
// window behind h * block_tokens touches is resident. resident[i]: block i is there.
uint32_t LongestWindowHit(std::span<const bool> resident, uint32_t window_tokens,
                          uint32_t block_tokens);

// Most blocks that a group holds at once for a sequence of `tokens` tokens that enters and commits
// chunks of at most `chunk_tokens`.
uint64_t MostBlocksHeld(const GroupSpec& group, uint64_t tokens, uint64_t chunk_tokens,
                        uint32_t block_tokens, uint32_t slack_tokens = 0);

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_ENGINE_LAYER_GROUPS_H_
