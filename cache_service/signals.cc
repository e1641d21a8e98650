#include "cache_service/signals.h"

#include <signal.h>
#include <time.h>

#include <utility>

namespace quire {
namespace {

bool IsIgnored(int number) {
  struct sigaction action = {};
  return sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

sigset_t TerminationSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  // The terminal is gone; under nohup that is no reason to end.
  if (!IsIgnored(SIGHUP)) sigaddset(&set, SIGHUP);
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
  const sigset_t ends = TerminationSignals();
  sigset_t both;
  sigandset(&both, &pending, &ends);
  return sigisemptyset(&both) == 0;
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
