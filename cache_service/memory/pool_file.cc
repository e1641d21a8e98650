#include "cache_service/memory/pool_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cache_service/base/error.h"
#include "cache_service/memory/file_lock.h"
#include "proto/quire/v1/pool_file.h"

namespace quire {
namespace {

std::string ErrnoText(int error) { return std::generic_category().message(error); }

absl::Status FileError(const char* field, const std::string& path, int error) {
  return ToStatus(InvalidArgument(field, absl::StrCat(path, ": ", ErrnoText(error)),
                                  {{"path", path}, {"error", ErrnoText(error)}}));
}

absl::Status Damaged(const std::string& path, const std::string& how,
                     std::vector<ErrorDetail> numbers = {}) {
  numbers.insert(numbers.begin(), {"path", path});
  return ToStatus(MakeError(Reason::kInvariantBroken, absl::StrCat("pool file ", path, ": ", how),
                            std::move(numbers)));
}

uint64_t RoundUpToPage(uint64_t bytes) {
  return (bytes + v1::kPoolPageBytes - 1) / v1::kPoolPageBytes * v1::kPoolPageBytes;
}

// A file system without a limit of its own says that it has no blocks.
uint64_t FreeBytes(int fd) {
  struct statvfs info = {};
  if (fstatvfs(fd, &info) != 0) return 0;
  if (info.f_blocks == 0) return std::numeric_limits<uint64_t>::max();
  return uint64_t{info.f_bavail} * info.f_frsize;
}

// Little enough to be taken within moments, even where the file system writes zeros.
constexpr uint64_t kPieceBytes = uint64_t{64} << 20;

}  // namespace

absl::Status CheckRegionBytes(uint64_t blocks_bytes) {
  if (blocks_bytes <= kMostRegionBytes) return absl::OkStatus();
  return ToStatus(InvalidArgument(
      "device_memory_bytes",
      absl::StrCat(blocks_bytes, " is more than a process can map, ", kMostRegionBytes),
      {{"given", blocks_bytes}, {"limit", kMostRegionBytes}}));
}

PoolFile::PoolFile(const PoolFileParams& params)
    : params_(params), blocks_offset_(BytesOf(0, params.lease_word_count)) {}

absl::StatusOr<std::unique_ptr<PoolFile>> PoolFile::Create(const PoolFileParams& params,
                                                           const StopFunction& stopped) {
  if (absl::Status status = CheckRegionBytes(params.blocks_bytes); !status.ok()) return status;
  std::unique_ptr<PoolFile> file(new PoolFile(params));
  if (absl::Status status = file->Open(); !status.ok()) return status;
  if (absl::Status status = file->TakeSpace(stopped); !status.ok()) return status;
  if (absl::Status status = file->WriteFirstHeader(); !status.ok()) return status;
  return file;
}

absl::Status PoolFile::CanBeMade(const PoolFileParams& params) { return PoolFile(params).Open(); }

PoolFile::~PoolFile() {
  if (visible_) unlink(params_.path.c_str());
  if (fd_ >= 0) close(fd_);
}

// The file gets its name only once it is locked, so that a starting server never takes it for the
// file of a dead one.
absl::Status PoolFile::Open() {
  const std::string unnamed = absl::StrCat(params_.path, ".new");
  fd_ = open(unnamed.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd_ < 0) return FileError("memory_directory", unnamed, errno);
  if (!TryLockByte(fd_, kOwnerLockOffset) ||
      std::rename(unnamed.c_str(), params_.path.c_str()) != 0) {
    const int error = errno;
    unlink(unnamed.c_str());
    return FileError("memory_directory", unnamed, error);
  }
  visible_ = true;
  if (params_.group != static_cast<gid_t>(-1) &&
      fchown(fd_, static_cast<uid_t>(-1), params_.group) != 0) {
    return FileError("memory_group", params_.path, errno);
  }
  if (fchmod(fd_, params_.mode) != 0) return FileError("memory_mode", params_.path, errno);
  return absl::OkStatus();
}

absl::Status PoolFile::TakeSpace(const StopFunction& stopped) {
  // Found out before a whole disk is filled.
  if (bytes() > FreeBytes(fd_)) return NoSpace(ENOSPC);
  for (uint64_t taken = 0; taken < bytes();) {
    if (stopped != nullptr && stopped()) return absl::CancelledError("stopped at its start");
    const uint64_t piece = std::min(kPieceBytes, bytes() - taken);
    const int error = posix_fallocate(fd_, static_cast<off_t>(taken), static_cast<off_t>(piece));
    if (error == EINTR) continue;
    if (error != 0) return NoSpace(error);
    taken += piece;
  }
  return absl::OkStatus();
}

absl::Status PoolFile::NoSpace(int error) {
  // What was taken so far was free before.
  if (ftruncate(fd_, 0) != 0) return FileError("memory_directory", params_.path, errno);
  const uint64_t available = FreeBytes(fd_);
  const std::string folder = std::filesystem::path(params_.path).parent_path();
  return ToStatus(InvalidArgument(
      "device_memory_bytes",
      absl::StrCat(folder, " cannot give ", bytes(), " bytes, ", available,
                   " are free: ", ErrnoText(error)),
      {{"needed_bytes", bytes()}, {"free_bytes", available}, {"path", params_.path}}));
}

absl::Status PoolFile::WriteFirstHeader() {
  header_ = {.epoch = params_.epoch,
             .rank = params_.rank,
             .blocks_offset = blocks_offset_,
             .lease_words_offset = LeaseWordOffset(0),
             .lease_word_count = params_.lease_word_count};
  return WriteHeader();
}

absl::Status PoolFile::WriteHeader() {
  return Write(0, std::as_bytes(std::span<const v1::PoolFileHeader>(&header_, 1)));
}

absl::Status PoolFile::Write(uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return Damaged(params_.path, ErrnoText(put < 0 ? errno : EIO));
    bytes = bytes.subspan(static_cast<size_t>(put));
    offset += static_cast<uint64_t>(put);
  }
  return absl::OkStatus();
}

absl::Status PoolFile::FixGeometry(const BlockGeometry& geometry) {
  header_.layout_id = geometry.layout_id;
  header_.layout_version = geometry.layout_version;
  header_.block_bytes = geometry.block_bytes;
  header_.block_count = geometry.block_count;
  return WriteHeader();
}

absl::Status PoolFile::SetLeaseWord(uint64_t slot, uint64_t value) {
  return Write(LeaseWordOffset(slot), std::as_bytes(std::span<const uint64_t>(&value, 1)));
}

absl::Status PoolFile::Check() const {
  struct stat info = {};
  if (fstat(fd_, &info) != 0) return Damaged(params_.path, ErrnoText(errno));
  const auto found = static_cast<uint64_t>(info.st_size);
  if (info.st_nlink == 0) return Damaged(params_.path, "was removed while the server uses it");
  if (found == bytes()) return absl::OkStatus();
  return Damaged(params_.path,
                 absl::StrCat("has ", found, " bytes instead of ", bytes(),
                              "; somebody changed it while the server uses it"),
                 {{"found_bytes", found}, {"expected_bytes", bytes()}});
}

bool PoolFile::IsLocked(uint64_t lease_number) const {
  return IsByteLocked(fd_, v1::kLockBase + lease_number);
}

absl::Status PoolFile::Read(uint64_t offset, std::span<std::byte> out) const {
  if (offset > params_.blocks_bytes || out.size() > params_.blocks_bytes - offset) {
    return ToStatus(InvalidArgument("offset", "beyond the region",
                                    {{"offset", offset}, {"limit", params_.blocks_bytes}}));
  }
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t got = pread(fd_, out.data() + done, out.size() - done,
                              static_cast<off_t>(blocks_offset_ + offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Damaged(params_.path, got < 0 ? ErrnoText(errno) : "is cut short");
    done += static_cast<size_t>(got);
  }
  return absl::OkStatus();
}

uint64_t PoolFile::LeaseWordOffset(uint64_t slot) {
  return v1::kPoolPageBytes + slot * sizeof(uint64_t);
}

uint64_t PoolFile::BytesOf(uint64_t blocks_bytes, uint64_t lease_word_count) {
  return RoundUpToPage(LeaseWordOffset(lease_word_count)) + blocks_bytes;
}

}  // namespace quire
