// The orderly end of a program.
#ifndef QUIRE_WORKER_RUNTIME_STOP_SIGNAL_H_
#define QUIRE_WORKER_RUNTIME_STOP_SIGNAL_H_

#include <atomic>

namespace quire::runtime {

// True after the first SIGINT or SIGTERM; the second one ends the process as if this were not here.
const std::atomic<bool>& StopOnSignals();

// For a process that another one ends: terminals and service managers signal all of a group.
void LeaveSignalsToParent();

}  // namespace quire::runtime

#endif  // QUIRE_WORKER_RUNTIME_STOP_SIGNAL_H_
