// Names of pool files, and the removal of those whose server is dead.
#ifndef QUIRE_CACHE_SERVICE_MEMORY_POOL_FILE_NAMES_H_
#define QUIRE_CACHE_SERVICE_MEMORY_POOL_FILE_NAMES_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace quire {

// DIRECTORY/quire-POOL-EPOCH-rankN.pool; the epoch in 16 hexadecimal digits.
std::string PoolFilePath(const std::string& directory, const std::string& pool_name, uint64_t epoch,
                         uint32_t rank);

// Whether a file name is that of a pool file of this pool, whatever the epoch.
bool IsFileOfPool(std::string_view file_name, std::string_view pool_name);

// Unlinks the pool's files that no living server owns; returns how many. They are never read: what
// an earlier epoch wrote has no meaning in this one.
int RemoveFilesOfDeadServers(const std::string& directory, const std::string& pool_name);

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_MEMORY_POOL_FILE_NAMES_H_
