// Where pool files go and how much room they need, before any is made.
#ifndef QUIRE_CACHE_SERVICE_MEMORY_SHM_SPACE_H_
#define QUIRE_CACHE_SERVICE_MEMORY_SHM_SPACE_H_

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "cache_service/memory/pool_file.h"

namespace quire {

struct ShmOptions {
  std::string pool_name;
  std::string directory = "/dev/shm";
  mode_t mode = 0600;
  gid_t group = static_cast<gid_t>(-1);
  uint64_t epoch = 0;
  uint32_t ranks = 1;
  // Of each rank.
  uint64_t bytes = 0;
  uint32_t max_leases = 1024;
};

// Words for leases: attaches in flight may hold a few more than there are leases.
uint64_t LeaseWordCount(uint32_t max_leases);

PoolFileParams FileOf(const ShmOptions& options, uint32_t rank);

// Whether the folders take such files, of that mode and group. Errors: INVALID_ARGUMENT naming
// memory_directory or memory_group.
absl::Status CheckFolders(std::span<const ShmOptions> pools);

// What pools of one folder's file system have between them.
enum class Space : uint8_t { kWhole, kFree };

// Whether the files of all ranks and pools fit in together. Errors: INVALID_ARGUMENT for
// device_memory_bytes with the bytes needed and there.
absl::Status CheckSpace(std::span<const ShmOptions> pools, Space space);

// Removes the files that dead servers of these pools left, then checks what is free. Errors as
// CheckSpace.
absl::Status MakeRoom(std::span<const ShmOptions> pools);

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_MEMORY_SHM_SPACE_H_
