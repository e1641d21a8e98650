// Byte layout of a pool: from the shape of a model to layer groups of equal block bytes.
#ifndef QUIRE_CACHE_SERVICE_MEMORY_POOL_LAYOUT_H_
#define QUIRE_CACHE_SERVICE_MEMORY_POOL_LAYOUT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cache_service/engine/layer_groups.h"
#include "kernels/kv_layout.h"

namespace quire {

// What a worker says about the keys and values of one rank.
struct ModelShape {
  // Absent: only ids are counted, no bytes are laid out.
  std::optional<kernels::DType> dtype;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;
  // Window of each model layer (0: full attention); groups are planned from it. Or:
  std::vector<uint32_t> layer_windows;
  // groups taken as given.
  std::vector<GroupSpec> groups;
  uint32_t block_tokens = 16;
};

struct PoolLayout {
  ModelShape shape;
  std::vector<GroupSpec> groups;
  // One per group, all of block_bytes; empty where only ids are counted.
  std::vector<kernels::PagedKvLayout> group_layouts;
  uint64_t block_bytes = 0;
  // Id of the layout of the group with the most layers; 0 where only ids are counted.
  uint64_t layout_id = 0;

  uint64_t PaddingBytes(size_t group) const;
  // For people and for namespaces: equal text means equal layout.
  std::string Describe() const;
};

// Errors: INVALID_ARGUMENT naming the field of quire.v1.ModelLayout.
absl::StatusOr<PoolLayout> MakePoolLayout(const ModelShape& shape);

// Whether the bytes of one serve as the bytes of the other.
bool SameLayout(const PoolLayout& a, const PoolLayout& b);

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_MEMORY_POOL_LAYOUT_H_
