#include "worker/client/server_wait.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cache_service/base/error.h"
#include "worker/client/types.h"

namespace quire::client {
namespace {

constexpr Duration kTellEvery = std::chrono::seconds(5);
// A broken stream that is open again by then is nobody's concern.
constexpr Duration kQuiet = std::chrono::milliseconds(200);
// After the program was told to stop: enough for a server that is just being replaced.
constexpr Duration kStopPatience = std::chrono::seconds(5);

ServerNotice::Kind KindOf(const absl::Status& cause) {
  return HasReason(cause) && ReasonOf(cause) == Reason::kDraining
             ? ServerNotice::Kind::kDraining
             : ServerNotice::Kind::kUnreachable;
}

std::string Seconds(Duration duration) {
  return absl::StrFormat("%.4g s", std::chrono::duration<double>(duration).count());
}

}  // namespace

absl::Status ServerWait::Failed(const absl::Status& cause) {
  const TimePoint now = clock_.Now();
  const ServerNotice::Kind kind = KindOf(cause);
  if (since_ == TimePoint::max()) {
    since_ = now;
    tell_at_ = attached_ && kind != ServerNotice::Kind::kDraining ? now + kQuiet : now;
  } else if (kind != kind_) {
    tell_at_ = std::min(tell_at_, now);
  }
  kind_ = kind;
  if (waited() >= limit_) {
    return absl::UnavailableError(absl::StrCat(kind == ServerNotice::Kind::kDraining
                                                   ? "the server drains and has no successor after "
                                                   : "no answer from the server for ",
                                               Seconds(waited()), ": ", cause.message()));
  }
  if (absl::Status stopped = CheckStop(cause); !stopped.ok()) return stopped;
  if (now >= tell_at_) Tell(kind, cause);
  return absl::OkStatus();
}

absl::Status ServerWait::CheckStop(const absl::Status& cause) {
  if (stop_ == nullptr || !*stop_) return absl::OkStatus();
  stopped_ = std::min(stopped_, clock_.Now());
  if (clock_.Now() - stopped_ < kStopPatience) return absl::OkStatus();
  return absl::CancelledError(absl::StrCat("told to stop, and no answer from the server for ",
                                           Seconds(kStopPatience), ": ", cause.message()));
}

Duration ServerWait::pause() const {
  return std::clamp<Duration>(waited() / 4, std::chrono::milliseconds(5),
                              std::chrono::milliseconds(500));
}

void ServerWait::Answered() {
  stopped_ = TimePoint::max();
  if (since_ == TimePoint::max()) return;
  if (kind_ == ServerNotice::Kind::kDraining) {
    since_ = clock_.Now();
    return;
  }
  if (told_) Tell(ServerNotice::Kind::kAnswersAgain, absl::OkStatus());
  since_ = TimePoint::max();
  told_ = false;
}

void ServerWait::Attached(const absl::Status& ended) {
  stopped_ = TimePoint::max();
  if (!ended.ok()) {
    Tell(ServerNotice::Kind::kAttachedAgain, ended);
  } else if (told_) {
    Tell(ServerNotice::Kind::kAnswersAgain, absl::OkStatus());
  }
  since_ = TimePoint::max();
  told_ = false;
  attached_ = true;
}

void ServerWait::Tell(ServerNotice::Kind kind, const absl::Status& cause) {
  told_ = true;
  tell_at_ = AddSaturating(clock_.Now(), kTellEvery);
  if (tell_ != nullptr) tell_({kind, waited(), limit_, cause});
}

Duration ServerWait::waited() const {
  return since_ == TimePoint::max() ? Duration::zero() : clock_.Now() - since_;
}

}  // namespace quire::client
