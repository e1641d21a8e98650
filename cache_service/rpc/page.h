// Pages of a list that is ordered by key. A page token names the list and the last key of the page
// before, so that what comes and goes between two calls neither repeats nor hides the rest.
#ifndef QUIRE_CACHE_SERVICE_RPC_PAGE_H_
#define QUIRE_CACHE_SERVICE_RPC_PAGE_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace quire {

class Pager {
 public:
  static constexpr uint32_t kDefaultSize = 100;
  static constexpr uint32_t kMaxSize = 1000;

  // `list`: what decides which list it is. Errors: INVALID_ARGUMENT for page_size and page_token.
  static absl::StatusOr<Pager> Make(uint32_t page_size, const std::string& page_token,
                                    std::initializer_list<std::string_view> list);

  // Asked for each key in order: whether it belongs to the page. After the first key beyond the
  // page next_page_token() is set.
  bool Takes(const std::string& key);

  bool full() const { return !next_page_token_.empty(); }

  const std::string& next_page_token() const { return next_page_token_; }

 private:
  Pager(uint32_t size, std::string list, std::string after)
      : size_(size), list_(std::move(list)), after_(std::move(after)) {}

  uint32_t size_;
  // In front of the key in each token.
  std::string list_;
  // Keys up to this one belong to earlier pages.
  std::string after_;
  std::string last_;
  std::string next_page_token_;
  uint32_t taken_ = 0;
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_RPC_PAGE_H_
