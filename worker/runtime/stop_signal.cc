#include "worker/runtime/stop_signal.h"

#include <signal.h>

namespace quire::runtime {
namespace {

std::atomic<bool> stop_asked{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void AskToStop(int) { stop_asked = true; }

}  // namespace

const std::atomic<bool>& StopOnSignals() {
  struct sigaction action = {};
  action.sa_handler = AskToStop;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  return stop_asked;
}

void LeaveSignalsToParent() {
  signal(SIGINT, SIG_IGN);
  signal(SIGTERM, SIG_IGN);
}

}  // namespace quire::runtime
