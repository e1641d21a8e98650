// Files that an operator names: read whole, but never without end.
#ifndef QUIRE_CACHE_SERVICE_BASE_SMALL_FILE_H_
#define QUIRE_CACHE_SERVICE_BASE_SMALL_FILE_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace quire {

inline constexpr size_t kMostSmallFileBytes = size_t{1} << 20;

// Errors: INVALID_ARGUMENT for `field`: not to be read, or larger than kMostSmallFileBytes.
absl::StatusOr<std::string> ReadSmallFile(std::string_view field, const std::string& path);

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_BASE_SMALL_FILE_H_
