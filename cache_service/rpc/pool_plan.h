// From the options of a pool and a layout to the options of its engine, before anything is made.
#ifndef QUIRE_CACHE_SERVICE_RPC_POOL_PLAN_H_
#define QUIRE_CACHE_SERVICE_RPC_POOL_PLAN_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cache_service/engine/engine_options.h"
#include "cache_service/memory/pool_layout.h"

namespace quire {

struct PoolOptions {
  // Template: groups, block_bytes, layout_tag, and for shared memory block_count, come from the
  // layout. max_sequence_tokens 0: 131072, or what the pool holds.
  EngineOptions engine;
  // Absent: the first attach decides.
  std::optional<ModelShape> shape;
  // Of each rank; only with shared memory.
  uint64_t device_memory_bytes = 0;
  uint32_t ranks = 1;
};

// The shape of a pool that only counts ids: one group of full attention.
ModelShape IdsOnlyShape(uint32_t block_tokens);

// Errors: INVALID_ARGUMENT naming the option and the numbers, for example for a pool that cannot
// hold one sequence.
absl::StatusOr<EngineOptions> PlanEngine(const PoolOptions& pool, const PoolLayout& layout);

// What would be refused whatever worker comes. Without a shape, one group of full attention with
// the smallest blocks there are stands for the layout. Errors as PlanEngine.
absl::Status CheckPool(const PoolOptions& pool);

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_RPC_POOL_PLAN_H_
