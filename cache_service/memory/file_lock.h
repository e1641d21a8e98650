// Open-file-description locks on single bytes: owned by the open file, not by the process, and
// dropped by the kernel with the last descriptor or mapping.
#ifndef QUIRE_CACHE_SERVICE_MEMORY_FILE_LOCK_H_
#define QUIRE_CACHE_SERVICE_MEMORY_FILE_LOCK_H_

#include <cstdint>

namespace quire {

// False if another open file holds the byte.
bool TryLockByte(int fd, uint64_t offset);
// Whether another open file holds a lock on the byte, shared or exclusive. A file system that
// cannot tell counts as held: nothing is given away on a guess.
bool IsByteLocked(int fd, uint64_t offset);

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_MEMORY_FILE_LOCK_H_
