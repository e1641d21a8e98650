// One seed: a server, several workers with their devices, a network, an administrator, and what
// goes wrong. Deterministic; not thread-safe.
//
//   World world(seed, /*audit_every=*/64, /*trace=*/false);
//   world.Run(10'000);
//   if (!world.violation().empty()) ...
#ifndef QUIRE_TESTS_SIMULATION_WORLD_H_
#define QUIRE_TESTS_SIMULATION_WORLD_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/simulation/admin.h"
#include "tests/simulation/process.h"
#include "tests/simulation/server.h"
#include "tests/simulation/shared.h"

namespace quire::simulation {

class World {
 public:
  // Looks for broken invariants every `audit_every` ticks.
  World(uint64_t seed, Tick audit_every, bool trace);

  // At least so many operations, then everything ends and every block is accounted for. Stops at
  // the first violation.
  void Run(uint64_t operations);

  // "" if there is none.
  const std::string& violation() const { return judge_.violation(); }

  std::string Describe() const { return simulation::Describe(plan_); }

  uint64_t operations() const { return server_.operations(); }

  // Of everything that happened, to compare two runs.
  uint64_t digest() const;

 private:
  void Step();
  void DeliverReplies();
  void Trouble();
  void TroubleProcess(Process& process);
  void TroubleServer();
  void Respawn();
  void Close();
  void CheckAccount();

  const Plan plan_;
  const Tick audit_every_;
  Judge judge_;
  Random random_;
  Network network_;
  Prompts prompts_;
  Shared shared_;
  Server server_;
  Admin admin_;
  // All processes that are not gone, and by worker: the newest one and when the next starts.
  std::vector<std::unique_ptr<Process>> processes_;

  struct Worker {
    const WorkerPlan* plan = nullptr;
    ProcessId newest = 0;
    uint64_t incarnation = 0;
    Tick next_at = 0;
  };

  std::vector<Worker> workers_;
  ProcessId next_process_ = 1;
  bool closing_ = false;
};

}  // namespace quire::simulation

#endif  // QUIRE_TESTS_SIMULATION_WORLD_H_
