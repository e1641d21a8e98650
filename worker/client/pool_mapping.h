// The pool's memory in this process.
#ifndef QUIRE_WORKER_CLIENT_POOL_MAPPING_H_
#define QUIRE_WORKER_CLIENT_POOL_MAPPING_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace quire::client {

// What the server granted (quire.v1.MemoryRegion) and what the worker expects of it.
struct RegionGrant {
  uint32_t rank = 0;
  std::string path{};
  uint64_t blocks_offset = 0;
  uint64_t bytes = 0;
  uint64_t layout_id = 0;
  uint32_t layout_version = 0;
  uint64_t lease_word_offset = 0;
  uint64_t lease_word = 0;
  uint64_t lock_offset = 0;
  uint64_t epoch = 0;
  uint64_t block_bytes = 0;
  uint64_t block_count = 0;
};

// A mapped region with its lease lock. Destruction unmaps and, with it, drops the lock: no kernel
// or copy that uses the memory may run then. Thread-safe.
class PoolMapping {
 public:
  // Opens the file, checks its header against the grant, takes the shared lock on the lease's byte
  // and maps the blocks through the same description. Errors: NOT_FOUND or PERMISSION_DENIED from
  // the file system; FAILED_PRECONDITION with reason LAYOUT_MISMATCH for another layout,
  // EPOCH_MISMATCH for a file of another server life, LEASE_EXPIRED for a revoked lease; DATA_LOSS
  // for a file that is no pool file or too short.
  static absl::StatusOr<std::unique_ptr<PoolMapping>> Map(const RegionGrant& grant);

  ~PoolMapping();
  PoolMapping(const PoolMapping&) = delete;
  PoolMapping& operator=(const PoolMapping&) = delete;

  // First byte of block 0.
  std::byte* blocks() const { return blocks_; }

  uint64_t block_bytes() const { return grant_.block_bytes; }

  // False once the server revoked the lease: what was computed since the last check is void.
  bool LeaseIsGood() const;

 private:
  explicit PoolMapping(const RegionGrant& grant) : grant_(grant) {}

  absl::Status Open();
  absl::Status CheckHeader() const;
  absl::Status Lock() const;
  absl::Status MapPages();

  const RegionGrant grant_;
  int fd_ = -1;
  std::byte* control_ = nullptr;  // read-only: header and lease words
  std::byte* blocks_ = nullptr;
};

}  // namespace quire::client

#endif  // QUIRE_WORKER_CLIENT_POOL_MAPPING_H_
