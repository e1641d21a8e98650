#include "cache_service/memory/shm_pool_memory.h"

#include <algorithm>
#include <utility>

#include "cache_service/base/error.h"
#include "cache_service/memory/shm_space.h"
#include "proto/quire/v1/pool_file.h"

namespace quire {
namespace {

// Never the number of a lease, so it reads "revoked" to everyone.
constexpr uint64_t kRevokedWord = 0;

}  // namespace

absl::StatusOr<std::unique_ptr<ShmPoolMemory>> ShmPoolMemory::Create(const ShmOptions& options,
                                                                     const StopFunction& stopped) {
  if (absl::Status status = MakeRoom({&options, 1}); !status.ok()) return status;
  std::vector<std::unique_ptr<PoolFile>> files;
  for (uint32_t rank = 0; rank < options.ranks; ++rank) {
    absl::StatusOr<std::unique_ptr<PoolFile>> file =
        PoolFile::Create(FileOf(options, rank), stopped);
    if (!file.ok()) return file.status();
    files.push_back(*std::move(file));
  }
  return std::unique_ptr<ShmPoolMemory>(
      new ShmPoolMemory(std::move(files), LeaseWordCount(options.max_leases)));
}

ShmPoolMemory::ShmPoolMemory(std::vector<std::unique_ptr<PoolFile>> files, uint64_t lease_words)
    : files_(std::move(files)), slots_(lease_words) {}

absl::Status ShmPoolMemory::FixGeometry(const BlockGeometry& geometry) {
  for (const auto& file : files_) {
    if (absl::Status status = file->FixGeometry(geometry); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ShmPoolMemory::Check() const {
  for (const auto& file : files_) {
    if (absl::Status status = file->Check(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<MemoryGrant>> ShmPoolMemory::Grant(uint64_t lease_number) {
  MutexLock lock(mutex_);
  const absl::StatusOr<LeaseSlots::Grant> slot = slots_.Take(lease_number);
  if (!slot.ok()) return slot.status();
  if (absl::Status status = Check(); !status.ok()) return status;
  std::vector<MemoryGrant> grants;
  for (uint32_t rank = 0; rank < ranks(); ++rank) {
    PoolFile& file = *files_[rank];
    if (!slot->revoked) {
      absl::Status status = file.SetLeaseWord(slot->slot, lease_number);
      if (!status.ok()) return status;
    }
    grants.push_back({.rank = rank,
                      .path = file.path(),
                      .blocks_offset = file.blocks_offset(),
                      .bytes = file.blocks_bytes(),
                      .lease_word_offset = PoolFile::LeaseWordOffset(slot->slot),
                      .lease_word = lease_number,
                      .lock_offset = v1::kLockBase + lease_number});
  }
  return grants;
}

void ShmPoolMemory::Revoke(uint64_t lease_number) {
  MutexLock lock(mutex_);
  const std::optional<uint64_t> slot = slots_.Release(lease_number);
  if (!slot.has_value()) return;
  // A word that cannot be written is in a file that was damaged, which Check reports.
  for (const auto& file : files_) (void)file->SetLeaseWord(*slot, kRevokedWord);
}

absl::Status ShmPoolMemory::Read(uint32_t rank, uint64_t offset, std::span<std::byte> out) const {
  if (rank >= ranks()) {
    return ToStatus(InvalidArgument("rank", "no such rank", {{"given", rank}, {"limit", ranks()}}));
  }
  return files_[rank]->Read(offset, out);
}

bool ShmPoolMemory::IsMapped(uint64_t lease_number) {
  return std::ranges::all_of(files_,
                             [&](const auto& file) { return file->IsLocked(lease_number); });
}

bool ShmPoolMemory::IsGone(uint64_t lease_number) {
  return std::ranges::none_of(files_,
                              [&](const auto& file) { return file->IsLocked(lease_number); });
}

}  // namespace quire
