// Servers that start at the same time take their space one after another.
#ifndef QUIRE_CACHE_SERVICE_MEMORY_FOLDER_LOCKS_H_
#define QUIRE_CACHE_SERVICE_MEMORY_FOLDER_LOCKS_H_

#include <span>
#include <vector>

#include "cache_service/base/clock.h"
#include "cache_service/memory/shm_space.h"

namespace quire {

// While it lives no other one has the same folder. Without it two servers could each take half of
// what one of them needs, and both would fail. Advisory: a folder that cannot be opened, or that
// somebody keeps longer than `patience`, is gone without.
class FolderLocks {
 public:
  FolderLocks(std::span<const ShmOptions> pools, Duration patience, const StopFunction& stopped);
  ~FolderLocks();
  FolderLocks(const FolderLocks&) = delete;
  FolderLocks& operator=(const FolderLocks&) = delete;

  size_t size() const { return descriptors_.size(); }

 private:
  std::vector<int> descriptors_;
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_MEMORY_FOLDER_LOCKS_H_
