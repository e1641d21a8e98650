#include "worker/client/lease_keeper.h"

#include <algorithm>
#include <utility>

#include "cache_service/base/error.h"
#include "worker/client/types.h"

namespace quire::client {
LeaseKeeper::LeaseKeeper(const Options& options, const Clock& clock, TimePoint attached_at,
                         Renew renew)
    : options_(options),
      clock_(clock),
      renew_(std::move(renew)),
      last_renewal_(attached_at),
      lease_(options.lease) {
  thread_ = std::thread([this] { Run(); });
}

LeaseKeeper::~LeaseKeeper() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void LeaseKeeper::Renewed(TimePoint sent) {
  MutexLock lock(mutex_);
  last_renewal_ = std::max(last_renewal_, sent);
}

bool LeaseKeeper::MayLaunch() const {
  MutexLock lock(mutex_);
  return lost_.ok() && clock_.Now() - last_renewal_ < lease_ - options_.margin;
}

absl::Status LeaseKeeper::lost() const {
  MutexLock lock(mutex_);
  return lost_;
}

void LeaseKeeper::Run() {
  while (WaitUntilDue()) RenewOnce();
}

bool LeaseKeeper::WaitUntilDue() {
  MutexLock lock(mutex_);
  const Duration age = clock_.Now() - last_renewal_;
  // After a failed renewal the age is past the interval: a short pause keeps retries apart.
  const Duration wait = std::max<Duration>(options_.interval - age, options_.interval / 10);
  const auto until = std::chrono::steady_clock::now() + wait;
  while (!stopping_ && wake_.wait_until(mutex_, until) == std::cv_status::no_timeout) {
  }
  return !stopping_;
}

void LeaseKeeper::RenewOnce() {
  const TimePoint sent = clock_.Now();
  {
    MutexLock lock(mutex_);
    if (!lost_.ok() || sent - last_renewal_ < options_.interval) return;
  }
  const absl::StatusOr<Duration> renewed = renew_();
  MutexLock lock(mutex_);
  if (renewed.ok()) {
    last_renewal_ = std::max(last_renewal_, sent);
    lease_ = *renewed;
  } else if (EndsLease(renewed.status())) {
    lost_ = renewed.status();
  }
}

}  // namespace quire::client
