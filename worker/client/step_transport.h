// How steps and their replies travel: on a stream, or one call each. Internal to worker/client.
#ifndef QUIRE_WORKER_CLIENT_STEP_TRANSPORT_H_
#define QUIRE_WORKER_CLIENT_STEP_TRANSPORT_H_

#include <chrono>
#include <memory>

#include "absl/status/status.h"
#include "worker/client/connection.h"

namespace quire::client {

// An answer, or the status that refused the step.
struct StepReply {
  uint64_t step = 0;
  absl::Status refusal;
  v1::StepAnswer answer;
};

// Used by one thread. A broken transport stays broken: open another and send again what is
// unanswered.
class StepTransport {
 public:
  enum class Event { kReply, kTimeout, kBroken };

  virtual ~StepTransport() = default;

  // False: broken.
  virtual bool Send(const v1::StepBatch& step) = 0;
  // Waits up to `wait` for the next reply.
  virtual Event Next(StepReply& reply, std::chrono::nanoseconds wait) = 0;
  // Why it broke.
  virtual absl::Status status() = 0;
};

// Several steps in flight; replies are read ahead by a thread.
std::unique_ptr<StepTransport> OpenStream(Connection& connection);

// Each Send is one call that lasts until the answer is there, `timeout` at most.
std::unique_ptr<StepTransport> OpenUnary(Connection& connection, std::chrono::nanoseconds timeout);

}  // namespace quire::client

#endif  // QUIRE_WORKER_CLIENT_STEP_TRANSPORT_H_
