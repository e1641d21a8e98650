#include "cache_service/base/small_file.h"

#include <fstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cache_service/base/error.h"

namespace quire {

absl::StatusOr<std::string> ReadSmallFile(std::string_view field, const std::string& path) {
  const auto bad = [&](const std::string& problem, std::vector<ErrorDetail> details) {
    details.insert(details.begin(), {"path", path});
    return ToStatus(InvalidArgument(field, absl::StrCat(path, ": ", problem), std::move(details)));
  };
  std::ifstream file(path, std::ios::binary);
  // One more than there may be.
  std::string text(kMostSmallFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kMostSmallFileBytes) {
    return bad(absl::StrCat("larger than ", kMostSmallFileBytes, " bytes"),
               {{"limit", kMostSmallFileBytes}, {"unit", "bytes"}});
  }
  // A folder can be opened, but nothing comes out of it.
  if (!file.is_open() || file.bad()) return bad("cannot be read", {});
  return text;
}

}  // namespace quire
