// What a CacheClient is made of.
#ifndef QUIRE_WORKER_CLIENT_CLIENT_OPTIONS_H_
#define QUIRE_WORKER_CLIENT_CLIENT_OPTIONS_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "cache_service/base/clock.h"
#include "worker/client/server_wait.h"
#include "worker/client/types.h"

namespace quire::client {

enum class StepMode : uint8_t {
  // A bidirectional stream; up to max_steps_in_flight steps are unanswered.
  kStream,
  // One call per step.
  kUnary,
  // One call per step, and each reports that everything before it is applied and complete.
  kLockStep,
};

struct ClientOptions {
  // "unix:/path" or "host:port".
  std::string server{};
  // Bearer token, if the server wants one. Sent as it is: there is no TLS.
  std::string token{};
  // Who this worker is. Another process of the same name and a higher incarnation displaces it.
  std::string worker = "worker";
  // 0: taken from the wall clock, so that a restarted worker is younger than its last life.
  uint64_t incarnation = 0;
  // Empty: the server's only pool.
  std::string pool{};
  // Identifies model and weights; content is only shared between equal fingerprints.
  std::string model_fingerprint{};
  // Absent: no bytes are described, as for a pool without memory.
  std::optional<ModelLayout> layout{};
  uint32_t ranks = 1;
  // Whose region this process maps.
  uint32_t rank = 0;
  bool map_memory = true;
  StepMode mode = StepMode::kStream;
  // Absent: the server's default.
  std::optional<Duration> lease{};
  // Launching stops this long before the lease could end. Too short: a long launch may outlive the
  // lease and its results are thrown away. Too long: the worker pauses whenever a renewal is late.
  Duration lease_margin = std::chrono::seconds(3);
  // Deadline of a single call.
  Duration call_timeout = std::chrono::seconds(5);
  // An answer later than this makes the client open a new stream and send again.
  Duration step_timeout = std::chrono::seconds(10);
  // For how long a server that is not there, does not answer or drains is tried again without any
  // progress. Too short: an orderly restart of the server ends the worker.
  Duration retry_budget = std::chrono::seconds(60);
  // If not null and true, a server that does not answer is waited for no longer than 5 s more.
  const std::atomic<bool>* stop = nullptr;
  // Told, on the thread that uses the client, while a call waits for the server.
  TellServerNotice on_server_notice{};
};

}  // namespace quire::client

#endif  // QUIRE_WORKER_CLIENT_CLIENT_OPTIONS_H_
