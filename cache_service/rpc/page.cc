#include "cache_service/rpc/page.h"

#include "absl/strings/escaping.h"
#include "cache_service/base/error.h"

namespace quire {
namespace {

// With its length and theirs, so that no two lists have the same.
std::string PrefixOf(std::initializer_list<std::string_view> list) {
  std::string prefix = std::to_string(list.size());
  for (const std::string_view part : list) {
    prefix.append(":").append(std::to_string(part.size())).append(":").append(part);
  }
  return prefix;
}

}  // namespace

absl::StatusOr<Pager> Pager::Make(uint32_t page_size, const std::string& page_token,
                                  std::initializer_list<std::string_view> list) {
  if (page_size > kMaxSize) {
    return ToStatus(
        InvalidArgument("page_size", "too large", {{"given", page_size}, {"limit", kMaxSize}}));
  }
  const std::string prefix = PrefixOf(list);
  std::string text;
  if (!page_token.empty() &&
      !(absl::WebSafeBase64Unescape(page_token, &text) && text.starts_with(prefix))) {
    return ToStatus(InvalidArgument("page_token", "not of an earlier answer about the same list"));
  }
  std::string after = text.empty() ? "" : text.substr(prefix.size());
  return Pager(page_size == 0 ? kDefaultSize : page_size, prefix, std::move(after));
}

bool Pager::Takes(const std::string& key) {
  if (full() || (!after_.empty() && key <= after_)) return false;
  if (taken_ == size_) {
    next_page_token_ = absl::WebSafeBase64Escape(list_ + last_);
    return false;
  }
  ++taken_;
  last_ = key;
  return true;
}

}  // namespace quire
