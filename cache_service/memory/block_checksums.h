// Content checksums of blocks, read from pool memory.
#ifndef QUIRE_CACHE_SERVICE_MEMORY_BLOCK_CHECKSUMS_H_
#define QUIRE_CACHE_SERVICE_MEMORY_BLOCK_CHECKSUMS_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "cache_service/base/mutex.h"
#include "cache_service/engine/engine_observer.h"
#include "cache_service/memory/pool_layout.h"
#include "cache_service/memory/pool_memory.h"
#include "kernels/backend.h"

namespace quire {

// One checksum over the block's content on all ranks; padding does not count. Thread-safe, one
// block at a time.
class BlockChecksums final : public BlockContents {
 public:
  // `memory` and `layout` must outlive it. The layout has bytes. Errors: INVARIANT_BROKEN.
  static absl::StatusOr<std::unique_ptr<BlockChecksums>> Create(const PoolMemory& memory,
                                                                const PoolLayout& layout);

  // A block that cannot be read has the checksum of no content.
  Checksum ChecksumOf(BlockId block, uint32_t group) override;

 private:
  BlockChecksums(const PoolMemory& memory, const PoolLayout& layout,
                 std::unique_ptr<kernels::Backend> backend);

  bool AddRank(uint32_t rank, BlockId block, uint32_t group, Checksum& sum)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const PoolMemory& memory_;
  const PoolLayout& layout_;
  // By group: computing one hashes the whole layout.
  std::vector<uint64_t> seeds_;
  Mutex mutex_;
  const std::unique_ptr<kernels::Backend> backend_ ABSL_PT_GUARDED_BY(mutex_);
  std::vector<std::byte> bytes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_MEMORY_BLOCK_CHECKSUMS_H_
