#include "worker/runtime/fruitless_leases.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/runtime/server_notice_text.h"

namespace quire::runtime {
namespace {

// About three seconds with the pauses: enough for a server that is restarted a few times.
constexpr int kMost = 10;
constexpr int kMostWhenEnding = 3;

constexpr Duration kFirstPause = std::chrono::milliseconds(10);
constexpr Duration kLongestPause = std::chrono::milliseconds(500);

}  // namespace

absl::Status FruitlessLeases::Ended(const absl::Status& cause) {
  count_ = std::exchange(fruit_, false) ? 0 : count_ + 1;
  if (count_ < (ending_ ? kMostWhenEnding : kMost)) return absl::OkStatus();
  return absl::AbortedError(
      absl::StrCat(count_, " leases in a row ended before a token was chosen",
                   " under them, which a longer lease may prevent; the last: ", Describe(cause)));
}

Duration FruitlessLeases::pause() const {
  if (count_ == 0) return Duration::zero();
  return std::min<Duration>(kFirstPause * (1 << std::min(count_ - 1, 10)), kLongestPause);
}

}  // namespace quire::runtime
