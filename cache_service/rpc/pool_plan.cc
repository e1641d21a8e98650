#include "cache_service/rpc/pool_plan.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "cache_service/base/error.h"
#include "cache_service/memory/pool_file.h"

namespace quire {
namespace {

constexpr uint32_t kDefaultSequenceTokens = 131072;
// Ids are at most 2^31 - 2.
constexpr uint64_t kMostBlocks = (uint64_t{1} << 31) - 2;

bool HasMemory(const PoolOptions& pool) { return pool.engine.memory == PoolMemoryKind::kShared; }

// Without windows this is exact; windows let a sequence hold fewer blocks.
uint32_t TokensThatSurelyFit(const EngineOptions& options) {
  const uint64_t tokens =
      uint64_t{options.block_count} / options.groups.size() * options.block_tokens;
  return static_cast<uint32_t>(std::min<uint64_t>(tokens, kDefaultSequenceTokens));
}

// For a message: the most there is where the product does not fit.
uint64_t BytesOfBlocks(uint64_t blocks, uint64_t block_bytes) {
  const uint64_t most = std::numeric_limits<uint64_t>::max();
  return block_bytes > 0 && blocks > most / block_bytes ? most : blocks * block_bytes;
}

// What the operator gave: bytes, or blocks.
Error TooSmall(const PoolOptions& pool, const EngineOptions& options, uint64_t needed,
               const std::string& cannot) {
  const std::string holds = absl::StrCat("pool ", options.pool_name, " holds ", options.block_count,
                                         " blocks of ", options.block_tokens, " tokens");
  if (!HasMemory(pool)) {
    return InvalidArgument("block_count", absl::StrCat(holds, " and ", cannot),
                           {{"given", options.block_count}, {"needed", needed}});
  }
  return InvalidArgument("device_memory_bytes",
                         absl::StrCat(holds, " and ", options.block_bytes, " bytes in ",
                                      pool.device_memory_bytes, " bytes, and ", cannot),
                         {{"given", pool.device_memory_bytes},
                          {"needed", BytesOfBlocks(needed, options.block_bytes)},
                          {"block_bytes", options.block_bytes},
                          {"needed_blocks", needed}});
}

Error CheckSize(const PoolOptions& pool, const EngineOptions& options) {
  const size_t groups = options.groups.size();
  if (options.block_count < groups) {
    return TooSmall(pool, options, groups,
                    absl::StrCat("needs at least one for each of ", groups, " groups"));
  }
  const uint64_t needed = BlocksOfLongestSequence(options);
  if (needed <= options.block_count) return {};
  return TooSmall(pool, options, needed,
                  absl::StrCat("cannot hold one sequence of ", options.max_sequence_tokens,
                               " tokens, which needs ", needed, " blocks"));
}

ModelShape SmallestShape(uint32_t block_tokens) {
  ModelShape shape;
  shape.dtype = kernels::DType::kI8;
  shape.kv_heads = 1;
  shape.head_dim = 64;
  shape.layer_windows = {0};
  shape.block_tokens = block_tokens;
  return shape;
}

ModelShape AssumedShape(const PoolOptions& pool) {
  if (pool.shape.has_value()) return *pool.shape;
  const uint32_t block_tokens = pool.engine.block_tokens;
  return HasMemory(pool) ? SmallestShape(block_tokens) : IdsOnlyShape(block_tokens);
}

}  // namespace

ModelShape IdsOnlyShape(uint32_t block_tokens) {
  ModelShape shape;
  shape.block_tokens = block_tokens;
  return shape;
}

absl::StatusOr<EngineOptions> PlanEngine(const PoolOptions& pool, const PoolLayout& layout) {
  EngineOptions options = pool.engine;
  options.groups = layout.groups;
  options.block_bytes = layout.block_bytes;
  options.layout_tag = layout.Describe();
  if (HasMemory(pool)) {
    if (absl::Status status = CheckRegionBytes(pool.device_memory_bytes); !status.ok()) {
      return status;
    }
    if (layout.block_bytes == 0) {
      return ToStatus(InvalidArgument("layout", "a pool with memory needs dtype and shape"));
    }
    const uint64_t blocks = pool.device_memory_bytes / layout.block_bytes;
    options.block_count = static_cast<uint32_t>(std::min(blocks, kMostBlocks));
  }
  if (options.max_sequence_tokens == 0) options.max_sequence_tokens = TokensThatSurelyFit(options);
  if (Error error = CheckSize(pool, options); !error.ok()) return ToStatus(error);
  if (Error error = CheckOptions(options); !error.ok()) return ToStatus(error);
  return options;
}

absl::Status CheckPool(const PoolOptions& pool) {
  const absl::StatusOr<PoolLayout> layout = MakePoolLayout(AssumedShape(pool));
  if (!layout.ok()) return layout.status();
  return PlanEngine(pool, *layout).status();
}

}  // namespace quire
