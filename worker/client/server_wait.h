// Patience with a server that cannot be used, and what people are told about it.
#ifndef QUIRE_WORKER_CLIENT_SERVER_WAIT_H_
#define QUIRE_WORKER_CLIENT_SERVER_WAIT_H_

#include <atomic>
#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "cache_service/base/clock.h"

namespace quire::client {

// Something that people should know about the server.
struct ServerNotice {
  enum class Kind : uint8_t {
    kUnreachable,    // it does not answer; tried again until `limit`
    kDraining,       // it refuses what is new; tried again until `limit`
    kAnswersAgain,   // the wait is over
    kAttachedAgain,  // as a new incarnation, after `cause` ended the lease
  };

  Kind kind = Kind::kUnreachable;
  Duration waited{};
  Duration limit{};
  absl::Status cause{};
};

using TellServerNotice = std::function<void(const ServerNotice&)>;

// One wait at a time: from the first failed try to the first progress. Not thread-safe.
class ServerWait {
 public:
  // `clock` and `stop` must outlive the wait; `tell` and `stop` may be null. Once `stop` is true,
  // patience ends soon.
  ServerWait(Duration limit, TellServerNotice tell, const Clock& clock,
             const std::atomic<bool>* stop = nullptr)
      : limit_(limit), tell_(std::move(tell)), clock_(clock), stop_(stop) {}

  // A try failed. OK: try again after pause(). UNAVAILABLE without a reason: the limit is reached.
  absl::Status Failed(const absl::Status& cause);

  // An answer is awaited that may never come. CANCELLED: `stop` has been true for too long.
  absl::Status CheckStop(const absl::Status& cause);

  // Grows with the wait.
  Duration pause() const;

  // The server did something for this worker. One that drains is still not usable for what is new,
  // but its time counts from here.
  void Answered();

  // `ended`: what ended the lease before, OK at the first attach.
  void Attached(const absl::Status& ended);

 private:
  void Tell(ServerNotice::Kind kind, const absl::Status& cause);
  Duration waited() const;

  const Duration limit_;
  const TellServerNotice tell_;
  const Clock& clock_;
  const std::atomic<bool>* const stop_;
  // Since when `stop` is known to be true while a wait lasts.
  TimePoint stopped_ = TimePoint::max();
  // TimePoint::max(): nothing is waited for.
  TimePoint since_ = TimePoint::max();
  // When to tell (again); never told if the wait is over before.
  TimePoint tell_at_{};
  ServerNotice::Kind kind_ = ServerNotice::Kind::kUnreachable;
  bool told_ = false;
  bool attached_ = false;
};

}  // namespace quire::client

#endif  // QUIRE_WORKER_CLIENT_SERVER_WAIT_H_
