#include "cache_service/signals.h"

#include <signal.h>
#include <time.h>

#include <utility>

namespace quire {
namespace {

sigset_t TerminationSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

}  // namespace

void BlockSignals() {
  const sigset_t set = TerminationSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
}

bool TerminationIsPending() {
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1;
}

SignalThread::SignalThread(std::function<void(int)> on_signal)
    : thread_([on_signal = std::move(on_signal)](const std::stop_token& stop) {
        const sigset_t set = TerminationSignals();
        // Looks up now and then, because a drain may also end the process without a signal.
        const timespec look_up = {.tv_sec = 0, .tv_nsec = 50'000'000};
        int signals = 0;
        while (!stop.stop_requested()) {
          if (sigtimedwait(&set, nullptr, &look_up) > 0) on_signal(++signals);
        }
      }) {}

}  // namespace quire
