// The orderly end of a program.
#ifndef QUIRE_WORKER_RUNTIME_STOP_SIGNAL_H_
#define QUIRE_WORKER_RUNTIME_STOP_SIGNAL_H_

#include <atomic>

namespace quire::runtime {

// True after the first SIGINT or SIGTERM; the second one ends the process as if this were not here.
const std::atomic<bool>& StopOnSignals();

// For a process that another one ends: an interrupt at the terminal reaches both.
void LeaveInterruptsToParent();

}  // namespace quire::runtime

#endif  // QUIRE_WORKER_RUNTIME_STOP_SIGNAL_H_
