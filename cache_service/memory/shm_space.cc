#include "cache_service/memory/shm_space.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <limits>
#include <map>

#include "absl/strings/str_cat.h"
#include "cache_service/base/error.h"
#include "cache_service/memory/pool_file_names.h"
#include "proto/quire/v1/pool_file.h"

namespace quire {
namespace {

// Of one file system.
struct Need {
  std::string directory;
  uint64_t bytes = 0;
  uint64_t files = 0;
};

uint64_t SumOrMost(uint64_t a, uint64_t b) {
  const uint64_t most = std::numeric_limits<uint64_t>::max();
  return b > most - a ? most : a + b;
}

// A folder that is not there is for CheckFolders to tell.
std::map<dev_t, Need> NeedsOf(std::span<const ShmOptions> pools) {
  std::map<dev_t, Need> needs;
  for (const ShmOptions& pool : pools) {
    struct stat info = {};
    if (stat(pool.directory.c_str(), &info) != 0) continue;
    Need& need = needs[info.st_dev];
    need.directory = pool.directory;
    need.files += pool.ranks;
    // A region's bytes and the number of ranks are bounded, so that the product fits.
    need.bytes = SumOrMost(
        need.bytes, pool.ranks * PoolFile::BytesOf(pool.bytes, LeaseWordCount(pool.max_leases)));
  }
  return needs;
}

// What is there; without a limit of its own a file system says 0.
uint64_t BytesThere(const std::string& directory, Space space) {
  struct statvfs info = {};
  constexpr uint64_t kUnknown = std::numeric_limits<uint64_t>::max();
  if (statvfs(directory.c_str(), &info) != 0 || info.f_blocks == 0) return kUnknown;
  const uint64_t blocks = space == Space::kWhole ? info.f_blocks : info.f_bavail;
  return blocks * info.f_frsize;
}

absl::Status DoesNotFit(const Need& need, uint64_t there, Space space) {
  const char* how = space == Space::kWhole ? " bytes" : " bytes free";
  const char* name = space == Space::kWhole ? "folder_bytes" : "free_bytes";
  return ToStatus(
      InvalidArgument("device_memory_bytes",
                      absl::StrCat("the pool files of all ranks, ", need.files, " in all, need ",
                                   need.bytes, " bytes; ", need.directory, " has ", there, how),
                      {{"needed_bytes", need.bytes},
                       {name, there},
                       {"files", need.files},
                       {"path", need.directory}}));
}

}  // namespace

uint64_t LeaseWordCount(uint32_t max_leases) {
  constexpr uint64_t kWordsPerPage = v1::kPoolPageBytes / sizeof(uint64_t);
  return (max_leases / kWordsPerPage + 1) * kWordsPerPage;
}

PoolFileParams FileOf(const ShmOptions& options, uint32_t rank) {
  return {.path = PoolFilePath(options.directory, options.pool_name, options.epoch, rank),
          .mode = options.mode,
          .group = options.group,
          .epoch = options.epoch,
          .rank = rank,
          .blocks_bytes = options.bytes,
          .lease_word_count = LeaseWordCount(options.max_leases)};
}

absl::Status CheckFolders(std::span<const ShmOptions> pools) {
  for (const ShmOptions& pool : pools) {
    if (absl::Status status = PoolFile::CanBeMade(FileOf(pool, 0)); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status CheckSpace(std::span<const ShmOptions> pools, Space space) {
  for (const ShmOptions& pool : pools) {
    if (absl::Status status = CheckRegionBytes(pool.bytes); !status.ok()) return status;
  }
  for (const auto& [device, need] : NeedsOf(pools)) {
    const uint64_t there = BytesThere(need.directory, space);
    if (need.bytes > there) return DoesNotFit(need, there, space);
  }
  return absl::OkStatus();
}

absl::Status MakeRoom(std::span<const ShmOptions> pools) {
  for (const ShmOptions& pool : pools) RemoveFilesOfDeadServers(pool.directory, pool.pool_name);
  return CheckSpace(pools, Space::kFree);
}

}  // namespace quire
