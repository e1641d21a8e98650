#include "worker/client/pool_mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "cache_service/base/error.h"
#include "proto/quire/v1/pool_file.h"

namespace quire::client {
namespace {

absl::Status FileError(const std::string& path, const char* what) {
  return absl::ErrnoToStatus(errno, absl::StrCat("pool file ", path, ": ", what));
}

absl::Status NoPoolFile(const std::string& path, const std::string& why) {
  return absl::DataLossError(absl::StrCat("pool file ", path, ": ", why));
}

}  // namespace

absl::StatusOr<std::unique_ptr<PoolMapping>> PoolMapping::Map(const RegionGrant& grant) {
  std::unique_ptr<PoolMapping> mapping(new PoolMapping(grant));
  if (absl::Status status = mapping->Open(); !status.ok()) return status;
  if (absl::Status status = mapping->CheckHeader(); !status.ok()) return status;
  if (absl::Status status = mapping->Lock(); !status.ok()) return status;
  if (absl::Status status = mapping->MapPages(); !status.ok()) return status;
  if (!mapping->LeaseIsGood()) {
    return ToStatus(MakeError(Reason::kLeaseExpired, "the lease was revoked before it was mapped"));
  }
  return mapping;
}

PoolMapping::~PoolMapping() {
  if (blocks_ != nullptr) munmap(blocks_, grant_.block_bytes * grant_.block_count);
  if (control_ != nullptr) munmap(control_, grant_.blocks_offset);
  if (fd_ >= 0) close(fd_);
}

absl::Status PoolMapping::Open() {
  fd_ = open(grant_.path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd_ < 0) return FileError(grant_.path, "cannot open");

  struct stat info {};

  if (fstat(fd_, &info) != 0) return FileError(grant_.path, "cannot stat");
  const uint64_t needed = grant_.blocks_offset + grant_.block_bytes * grant_.block_count;
  if (static_cast<uint64_t>(info.st_size) < needed) {
    return NoPoolFile(grant_.path, absl::StrCat(info.st_size, " bytes, granted ", needed));
  }
  return absl::OkStatus();
}

absl::Status PoolMapping::CheckHeader() const {
  v1::PoolFileHeader header;
  if (pread(fd_, &header, sizeof(header), 0) != static_cast<ssize_t>(sizeof(header))) {
    return NoPoolFile(grant_.path, "no header");
  }
  if (header.magic != v1::kPoolFileMagic || header.version != v1::kPoolFileVersion) {
    return NoPoolFile(grant_.path,
                      absl::StrCat("magic ", absl::Hex(header.magic), " version ", header.version,
                                   " instead of ", v1::kPoolFileVersion));
  }
  if (header.epoch != grant_.epoch) {
    return ToStatus(MakeError(Reason::kEpochMismatch, "the pool file is of another server life",
                              {{"file_epoch", header.epoch}, {"epoch", grant_.epoch}}));
  }
  if (header.layout_id != grant_.layout_id || header.layout_version != grant_.layout_version ||
      header.rank != grant_.rank || header.block_bytes != grant_.block_bytes ||
      header.block_count != grant_.block_count || header.blocks_offset != grant_.blocks_offset) {
    return ToStatus(MakeError(Reason::kLayoutMismatch, "the pool file is laid out otherwise",
                              {{"file_layout_id", header.layout_id},
                               {"layout_id", grant_.layout_id},
                               {"file_block_bytes", header.block_bytes},
                               {"block_bytes", grant_.block_bytes}}));
  }
  if (grant_.lease_word_offset + sizeof(uint64_t) > grant_.blocks_offset) {
    return NoPoolFile(grant_.path, "the lease word lies outside the control pages");
  }
  return absl::OkStatus();
}

absl::Status PoolMapping::Lock() const {
  struct flock lock {};

  lock.l_type = F_RDLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(grant_.lock_offset);
  lock.l_len = 1;
  if (fcntl(fd_, F_OFD_SETLK, &lock) != 0) return FileError(grant_.path, "cannot lock the lease");
  return absl::OkStatus();
}

absl::Status PoolMapping::MapPages() {
  void* control = mmap(nullptr, grant_.blocks_offset, PROT_READ, MAP_SHARED, fd_, 0);
  if (control == MAP_FAILED) return FileError(grant_.path, "cannot map the control pages");
  control_ = static_cast<std::byte*>(control);
  void* blocks = mmap(nullptr, grant_.block_bytes * grant_.block_count, PROT_READ | PROT_WRITE,
                      MAP_SHARED, fd_, static_cast<off_t>(grant_.blocks_offset));
  if (blocks == MAP_FAILED) return FileError(grant_.path, "cannot map the blocks");
  blocks_ = static_cast<std::byte*>(blocks);
  return absl::OkStatus();
}

bool PoolMapping::LeaseIsGood() const {
  auto* word = reinterpret_cast<uint64_t*>(control_ + grant_.lease_word_offset);
  return std::atomic_ref<uint64_t>(*word).load(std::memory_order_acquire) == grant_.lease_word;
}

}  // namespace quire::client
