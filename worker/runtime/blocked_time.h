// What the server costs the thread that schedules launches, by place.
#ifndef QUIRE_WORKER_RUNTIME_BLOCKED_TIME_H_
#define QUIRE_WORKER_RUNTIME_BLOCKED_TIME_H_

#include "cache_service/base/clock.h"

namespace quire::runtime {

struct BlockedTime {
  // Handing over steps whose answers are awaited later: the thread's own work.
  Duration sending{};
  // Waiting for the server, by what the requests were doing: some sequence was past its first new
  // token; else, some prompt was beginning, growing or computed; else, finishes, reports of
  // completion and attaching again.
  Duration decoding{};
  Duration beginning{};
  Duration other{};

  Duration total() const { return sending + decoding + beginning + other; }
};

}  // namespace quire::runtime

#endif  // QUIRE_WORKER_RUNTIME_BLOCKED_TIME_H_
