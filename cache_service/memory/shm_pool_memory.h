// Pool memory in shared-memory files, one per rank.
#ifndef QUIRE_CACHE_SERVICE_MEMORY_SHM_POOL_MEMORY_H_
#define QUIRE_CACHE_SERVICE_MEMORY_SHM_POOL_MEMORY_H_

#include <memory>
#include <string>
#include <vector>

#include "cache_service/base/mutex.h"
#include "cache_service/memory/lease_slots.h"
#include "cache_service/memory/pool_file.h"
#include "cache_service/memory/pool_memory.h"
#include "cache_service/memory/shm_space.h"

namespace quire {

class ShmPoolMemory final : public PoolMemory {
 public:
  // Removes the files that dead servers of this pool left, then creates its own. Errors as
  // MakeRoom and PoolFile::Create; then nothing is left.
  static absl::StatusOr<std::unique_ptr<ShmPoolMemory>> Create(
      const ShmOptions& options, const StopFunction& stopped = nullptr);

  absl::Status FixGeometry(const BlockGeometry& geometry) override;
  absl::StatusOr<std::vector<MemoryGrant>> Grant(uint64_t lease_number) override;
  void Revoke(uint64_t lease_number) override;
  absl::Status Check() const override;
  absl::Status Read(uint32_t rank, uint64_t offset, std::span<std::byte> out) const override;

  uint32_t ranks() const override { return static_cast<uint32_t>(files_.size()); }

  bool IsMapped(uint64_t lease_number) override;
  bool IsGone(uint64_t lease_number) override;

 private:
  ShmPoolMemory(std::vector<std::unique_ptr<PoolFile>> files, uint64_t lease_words);

  const std::vector<std::unique_ptr<PoolFile>> files_;
  Mutex mutex_;
  LeaseSlots slots_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_MEMORY_SHM_POOL_MEMORY_H_
