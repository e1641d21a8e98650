// Whether the files that options name can be used, before any work.
#ifndef QUIRE_WORKER_RUNTIME_FLAG_FILES_H_
#define QUIRE_WORKER_RUNTIME_FLAG_FILES_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace quire::runtime {

// Of both: an empty path is no file. INVALID_ARGUMENT names the option; no file is changed or left.
absl::Status CheckWritable(std::string_view flag, const std::string& path);
absl::Status CheckReadable(std::string_view flag, const std::string& path);

}  // namespace quire::runtime

#endif  // QUIRE_WORKER_RUNTIME_FLAG_FILES_H_
