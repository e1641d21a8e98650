#include "cache_service/rpc/page.h"

#include "absl/strings/escaping.h"
#include "cache_service/base/error.h"

namespace quire {

absl::StatusOr<Pager> Pager::Make(uint32_t page_size, const std::string& page_token) {
  if (page_size > kMaxSize) {
    return ToStatus(
        InvalidArgument("page_size", "too large", {{"given", page_size}, {"limit", kMaxSize}}));
  }
  std::string after;
  if (!page_token.empty() && !absl::WebSafeBase64Unescape(page_token, &after)) {
    return ToStatus(InvalidArgument("page_token", "not a token of an earlier answer"));
  }
  return Pager(page_size == 0 ? kDefaultSize : page_size, std::move(after));
}

bool Pager::Takes(const std::string& key) {
  if (full() || (!after_.empty() && key <= after_)) return false;
  if (taken_ == size_) {
    next_page_token_ = absl::WebSafeBase64Escape(last_);
    return false;
  }
  ++taken_;
  last_ = key;
  return true;
}

}  // namespace quire
