#include "cache_service/memory/pool_file_names.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "cache_service/memory/file_lock.h"
#include "cache_service/memory/pool_file.h"

namespace quire {
namespace {

constexpr size_t kEpochDigits = 16;
constexpr std::string_view kSuffix = ".pool";
constexpr std::string_view kRank = "-rank";

bool IsHexDigit(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsOwned(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  // What this user may not even open is not this user's to remove.
  if (fd < 0) return true;
  const bool owned = IsByteLocked(fd, kOwnerLockOffset);
  close(fd);
  return owned;
}

}  // namespace

std::string PoolFilePath(const std::string& directory, const std::string& pool_name, uint64_t epoch,
                         uint32_t rank) {
  return absl::StrCat(directory, "/quire-", pool_name, "-", absl::Hex(epoch, absl::kZeroPad16),
                      "-rank", rank, ".pool");
}

bool IsFileOfPool(std::string_view file_name, std::string_view pool_name) {
  const std::string prefix = absl::StrCat("quire-", std::string(pool_name), "-");
  if (!file_name.starts_with(prefix) || !file_name.ends_with(kSuffix)) return false;
  file_name.remove_prefix(prefix.size());
  file_name.remove_suffix(kSuffix.size());
  if (file_name.size() <= kEpochDigits + kRank.size()) return false;
  const std::string_view epoch = file_name.substr(0, kEpochDigits);
  const std::string_view rank = file_name.substr(kEpochDigits + kRank.size());
  return std::ranges::all_of(epoch, IsHexDigit) &&
         file_name.substr(kEpochDigits).starts_with(kRank) && std::ranges::all_of(rank, IsDigit);
}

int RemoveFilesOfDeadServers(const std::string& directory, const std::string& pool_name) {
  std::error_code error;
  int removed = 0;
  for (std::filesystem::directory_iterator it(directory, error), end; !error && it != end;
       it.increment(error)) {
    const std::string path = it->path().string();
    if (!IsFileOfPool(it->path().filename().string(), pool_name) || IsOwned(path)) continue;
    if (unlink(path.c_str()) == 0) ++removed;
  }
  return removed;
}

}  // namespace quire
