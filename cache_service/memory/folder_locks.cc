#include "cache_service/memory/folder_locks.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <string>
#include <thread>
#include <utility>

namespace quire {
namespace {

constexpr std::chrono::milliseconds kPause(20);

// Each folder once, in an order that all servers share: two that need both must not wait for each
// other.
std::map<std::pair<dev_t, ino_t>, std::string> FoldersOf(std::span<const ShmOptions> pools) {
  std::map<std::pair<dev_t, ino_t>, std::string> folders;
  for (const ShmOptions& pool : pools) {
    struct stat info = {};
    if (stat(pool.directory.c_str(), &info) != 0) continue;
    folders.emplace(std::pair(info.st_dev, info.st_ino), pool.directory);
  }
  return folders;
}

bool Lock(int fd, Duration patience, const StopFunction& stopped) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (stopped != nullptr && stopped()) return false;
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

}  // namespace

FolderLocks::FolderLocks(std::span<const ShmOptions> pools, Duration patience,
                         const StopFunction& stopped) {
  for (const auto& [place, folder] : FoldersOf(pools)) {
    const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) continue;
    if (Lock(fd, patience, stopped)) {
      descriptors_.push_back(fd);
    } else {
      close(fd);
    }
  }
}

FolderLocks::~FolderLocks() {
  for (const int fd : descriptors_) close(fd);
}

}  // namespace quire
