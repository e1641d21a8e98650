// Keeps a lease alive from a thread of its own.
#ifndef QUIRE_WORKER_CLIENT_LEASE_KEEPER_H_
#define QUIRE_WORKER_CLIENT_LEASE_KEEPER_H_

#include <condition_variable>
#include <functional>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cache_service/base/clock.h"
#include "cache_service/base/mutex.h"

namespace quire::client {

// Thread-safe.
class LeaseKeeper {
 public:
  struct Options {
    Duration lease{};
    // Launching stops this long before the lease could end.
    Duration margin{};
    // Time between renewals when no step renews.
    Duration interval{};
  };

  // One renewal; returns the lease duration that holds from the time it was sent.
  using Renew = std::function<absl::StatusOr<Duration>()>;

  // `clock` must outlive the keeper. `attached_at` is when the attach was sent.
  LeaseKeeper(const Options& options, const Clock& clock, TimePoint attached_at, Renew renew);
  ~LeaseKeeper();
  LeaseKeeper(const LeaseKeeper&) = delete;
  LeaseKeeper& operator=(const LeaseKeeper&) = delete;

  // A call that renews the lease was sent at `sent` and answered well.
  void Renewed(TimePoint sent);

  // False if the last renewal is so old that the lease may end during a launch.
  bool MayLaunch() const;

  // The error that ended the lease, once one of the renewals said so; OK before.
  absl::Status lost() const;

 private:
  void Run();
  // Waits for the next renewal; false: stop.
  bool WaitUntilDue();
  void RenewOnce();

  const Options options_;
  const Clock& clock_;
  const Renew renew_;

  mutable Mutex mutex_;
  std::condition_variable_any wake_;
  TimePoint last_renewal_ ABSL_GUARDED_BY(mutex_);
  Duration lease_ ABSL_GUARDED_BY(mutex_);
  absl::Status lost_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace quire::client

#endif  // QUIRE_WORKER_CLIENT_LEASE_KEEPER_H_
