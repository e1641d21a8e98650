// One server and a few workers as processes, and what can happen to them.
#ifndef QUIRE_TESTS_CHAOS_FLEET_H_
#define QUIRE_TESTS_CHAOS_FLEET_H_

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/support/program.h"
#include "tests/support/server_process.h"

namespace quire::chaos {

struct WorkerState {
  // Absent: not started yet, or killed.
  std::optional<Program> program{};
  bool stopped = false;
  int lives = 0;
};

// A process that ends although nobody ended it is a failure of the test. Not thread-safe.
class Fleet {
 public:
  Fleet(size_t workers, uint64_t seed);

  ServerProcess& server() { return server_; }

  const std::vector<WorkerState>& workers() const { return workers_; }

  // File to which all lives of all workers write what they generated.
  std::string texts() const { return server_.folder() + "/texts"; }

  void StartWorker(size_t index);
  // kill -9, stopped or not.
  void KillWorker(size_t index);
  void StopWorker(size_t index);
  void ContinueWorker(size_t index);
  // SIGTERM; expects that it finishes what it has begun and that no request failed.
  void EndWorker(size_t index);

  void ExpectAllAlive();

 private:
  const uint64_t seed_;
  ServerProcess server_;
  std::vector<WorkerState> workers_;
};

}  // namespace quire::chaos

#endif  // QUIRE_TESTS_CHAOS_FLEET_H_
