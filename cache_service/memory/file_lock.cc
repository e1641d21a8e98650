#include "cache_service/memory/file_lock.h"

#include <fcntl.h>

namespace quire {
namespace {

struct flock ExclusiveByte(uint64_t offset) {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(offset);
  lock.l_len = 1;
  return lock;
}

}  // namespace

bool TryLockByte(int fd, uint64_t offset) {
  struct flock lock = ExclusiveByte(offset);
  return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

bool IsByteLocked(int fd, uint64_t offset) {
  struct flock lock = ExclusiveByte(offset);
  if (fcntl(fd, F_OFD_GETLK, &lock) != 0) return true;
  return lock.l_type != F_UNLCK;
}

}  // namespace quire
