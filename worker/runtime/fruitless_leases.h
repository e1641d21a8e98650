// What to do about leases that end before anything came of them.
#ifndef QUIRE_WORKER_RUNTIME_FRUITLESS_LEASES_H_
#define QUIRE_WORKER_RUNTIME_FRUITLESS_LEASES_H_

#include "absl/status/status.h"
#include "cache_service/base/clock.h"

namespace quire::runtime {

// Counts them in a row: a worker attaches again ever later, and in the end no more. Not
// thread-safe.
class FruitlessLeases {
 public:
  // Something was computed under the lease that will not be computed again.
  void Fruit() { fruit_ = true; }

  // A program that is about to end tries less often.
  void set_ending(bool ending) { ending_ = ending; }

  // The lease has ended. OK: attach again after pause(). ABORTED without a reason: it would not
  // help.
  absl::Status Ended(const absl::Status& cause);
  // Grows with the count.
  Duration pause() const;

 private:
  bool fruit_ = false;
  bool ending_ = false;
  int count_ = 0;
};

}  // namespace quire::runtime

#endif  // QUIRE_WORKER_RUNTIME_FRUITLESS_LEASES_H_
