// One server after the other: engine and pool memory of an epoch, and around them what the rpc
// layer adds: streams end each other, a pause lets messages wait, a restart loses everything. It
// also holds the engine to its answers: a repeat is equal, what is complete is public. Not
// thread-safe.
#ifndef QUIRE_TESTS_SIMULATION_SERVER_H_
#define QUIRE_TESTS_SIMULATION_SERVER_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include "cache_service/engine/cache_engine.h"
#include "tests/simulation/memory.h"
#include "tests/simulation/network.h"
#include "tests/simulation/shared.h"
#include "tests/simulation/sim_clock.h"

namespace quire::simulation {

class Server {
 public:
  explicit Server(Shared& shared);

  // Handles what has arrived and what is due.
  void Run(Tick now);
  void Pause(Tick until);
  // The process ends; another one, with a new epoch and new memory, starts at `restart`.
  void Kill(Tick now, Tick restart);
  // Admits nothing new and ends soon.
  void Drain(Tick until);

  // It goes on as it is.
  void StayUp() { ends_at_ = ~Tick{0}; }

  // Null while no server runs.
  CacheEngine* engine() { return engine_.get(); }

  bool paused(Tick now) const { return now < paused_until_; }

  // Operations handled, repeats not counted.
  uint64_t operations() const { return operations_; }

  void CountOperation() { ++operations_; }

  void Audit();

  // Then nothing may lie idle (E10).
  void Flush();

 private:
  struct Served {
    StreamId stream = 0;
    std::string worker;
    StepNumber last_step = 0;
    std::deque<std::shared_ptr<const StepResult>> answers;
  };

  void Start();
  void NoteRemovals();
  void Handle(const Request& request, Tick now);
  void Attach(const Request& request, Reply& reply);
  void Step(const Request& request, Reply& reply);
  void TraceStep(const Request& request);
  void TraceAnswer(const absl::StatusOr<std::shared_ptr<const StepResult>>& answer);
  void Accepted(const Request& request, Reply& reply);
  void CheckRepeat(const Served& served, const StepResult& answer);
  bool HoldsWindowBehind(const SequenceView& holder, size_t tokens) const;
  void Probe(const Request& request, const Served& served);
  void AddTables(const Request& request, const Served& served, Reply& reply);
  void EndStream(StreamId stream);

  Shared& shared_;
  const Plan& plan_;
  Network& network_;
  Judge& judge_;
  SimClock clock_;
  Epoch epoch_ = 0;
  std::shared_ptr<PoolMemory> memory_;
  std::unique_ptr<CacheEngine> engine_;
  std::map<LeaseId, Served> served_;
  Tick paused_until_ = 0;
  Tick restart_at_ = 0;
  // Of a server that drains.
  Tick ends_at_ = ~Tick{0};
  uint64_t mismatches_ = 0;
  TimePoint next_maintenance_{};
  uint64_t operations_ = 0;
};

}  // namespace quire::simulation

#endif  // QUIRE_TESTS_SIMULATION_SERVER_H_
