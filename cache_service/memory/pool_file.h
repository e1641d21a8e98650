// One shared-memory pool file (proto/quire/v1/pool_file.h): created, described and removed here.
#ifndef QUIRE_CACHE_SERVICE_MEMORY_POOL_FILE_H_
#define QUIRE_CACHE_SERVICE_MEMORY_POOL_FILE_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cache_service/memory/pool_memory.h"
#include "proto/quire/v1/pool_file.h"

namespace quire {

// Asked now and then by what takes long; true: give up.
using StopFunction = std::function<bool()>;

// No process can map more: the address space of user programs on x86-64.
inline constexpr uint64_t kMostRegionBytes = uint64_t{1} << 47;

// Errors: INVALID_ARGUMENT for device_memory_bytes with the limit.
absl::Status CheckRegionBytes(uint64_t blocks_bytes);

// The server that owns a pool file holds an exclusive open-file-description lock on this byte.
inline constexpr uint64_t kOwnerLockOffset = (uint64_t{1} << 62) - 1;

struct PoolFileParams {
  std::string path;
  mode_t mode = 0600;
  // -1: the server's group.
  gid_t group = static_cast<gid_t>(-1);
  uint64_t epoch = 0;
  uint32_t rank = 0;
  uint64_t blocks_bytes = 0;
  uint64_t lease_word_count = 0;
};

// The file's space is taken when it is created; the file is unlinked on destruction. Nothing of it
// is mapped here: whoever may write the file may also cut it short, and a mapping would then end
// the process.
class PoolFile {
 public:
  // Errors: INVALID_ARGUMENT naming memory_directory, memory_group or device_memory_bytes, with the
  // bytes needed and available; CANCELLED if `stopped` asks for it before the space is taken.
  static absl::StatusOr<std::unique_ptr<PoolFile>> Create(const PoolFileParams& params,
                                                          const StopFunction& stopped = nullptr);
  // Whether such a file can be made at all: makes it without its space, and removes it. Errors as
  // Create.
  static absl::Status CanBeMade(const PoolFileParams& params);
  ~PoolFile();
  PoolFile(const PoolFile&) = delete;
  PoolFile& operator=(const PoolFile&) = delete;

  // Errors of both: INVARIANT_BROKEN if the file cannot be written. Half a lease word is never read
  // as a good one, because only the number of the lease is.
  absl::Status FixGeometry(const BlockGeometry& geometry);
  absl::Status SetLeaseWord(uint64_t slot, uint64_t value);
  // Errors: INVARIANT_BROKEN with the bytes expected and found if the file was cut short or
  // removed.
  absl::Status Check() const;
  // Whether any process holds the lock byte of the lease.
  bool IsLocked(uint64_t lease_number) const;
  absl::Status Read(uint64_t offset, std::span<std::byte> out) const;

  const std::string& path() const { return params_.path; }

  uint64_t blocks_offset() const { return blocks_offset_; }

  uint64_t blocks_bytes() const { return params_.blocks_bytes; }

  static uint64_t LeaseWordOffset(uint64_t slot);
  // Size of a file.
  static uint64_t BytesOf(uint64_t blocks_bytes, uint64_t lease_word_count);

 private:
  explicit PoolFile(const PoolFileParams& params);
  absl::Status Open();
  absl::Status TakeSpace(const StopFunction& stopped);
  absl::Status NoSpace(int error);
  absl::Status WriteFirstHeader();
  absl::Status WriteHeader();
  absl::Status Write(uint64_t offset, std::span<const std::byte> bytes);

  uint64_t bytes() const { return blocks_offset_ + params_.blocks_bytes; }

  PoolFileParams params_;
  uint64_t blocks_offset_;
  int fd_ = -1;
  bool visible_ = false;
  v1::PoolFileHeader header_;
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_MEMORY_POOL_FILE_H_
