// Termination signals, taken by one thread of their own.
#ifndef QUIRE_CACHE_SERVICE_SIGNALS_H_
#define QUIRE_CACHE_SERVICE_SIGNALS_H_

#include <functional>
#include <thread>

namespace quire {

// Blocks the termination signals, SIGTERM, SIGINT and (unless it is ignored, as under nohup)
// SIGHUP, for this thread and those it starts later, and ignores those signals whose calls report
// the same as errors: SIGPIPE, and SIGXFSZ of a file past the limit of its user.
void BlockSignals();

// Whether one of them was sent and not taken yet. After BlockSignals, before a SignalThread.
bool TerminationIsPending();

// Calls back with the number of termination signals so far. Construct after BlockSignals.
class SignalThread {
 public:
  explicit SignalThread(std::function<void(int)> on_signal);

 private:
  std::jthread thread_;
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_SIGNALS_H_
