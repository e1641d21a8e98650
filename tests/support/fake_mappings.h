// Which leases some process still maps, as a test says. A lease counts as mapped from its attach on
// until End; thread-safe.
#ifndef QUIRE_TESTS_SUPPORT_FAKE_MAPPINGS_H_
#define QUIRE_TESTS_SUPPORT_FAKE_MAPPINGS_H_

#include <cstdint>
#include <set>

#include "cache_service/base/mutex.h"
#include "cache_service/engine/engine_observer.h"

namespace quire::testing {

class FakeMappings final : public MappingEvidence {
 public:
  bool IsMapped(uint64_t lease_number) override { return !IsGone(lease_number); }

  bool IsGone(uint64_t lease_number) override {
    MutexLock lock(mutex_);
    return gone_.contains(lease_number);
  }

  // The last process that mapped the pool under this lease is gone.
  void End(uint64_t lease_number) {
    MutexLock lock(mutex_);
    gone_.insert(lease_number);
  }

 private:
  Mutex mutex_;
  std::set<uint64_t> gone_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace quire::testing

#endif  // QUIRE_TESTS_SUPPORT_FAKE_MAPPINGS_H_
