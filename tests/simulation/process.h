// One process of a worker: its host and its device. Stopped, the host stands still and the device
// works on; killed, the device works on for a while and then the mappings end.
#ifndef QUIRE_TESTS_SIMULATION_PROCESS_H_
#define QUIRE_TESTS_SIMULATION_PROCESS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "tests/simulation/client.h"
#include "tests/simulation/device.h"
#include "tests/simulation/message.h"
#include "tests/simulation/shared.h"

namespace quire::simulation {

class Process {
 public:
  Process(Shared& shared, const WorkerPlan& plan, ProcessId id, uint64_t incarnation);

  void Run();

  // What arrives while the host is stopped waits.
  void Deliver(std::shared_ptr<const Reply> reply) { inbox_.push_back(std::move(reply)); }

  void Stop(Tick until);
  void Kill();

  void Leave(bool politely) { client_.Leave(politely); }

  ProcessId id() const { return id_; }

  bool stopped() const { return shared_.judge.now() < stopped_until_; }

  bool killed() const { return killed_; }

  // Nothing is left of it: no mapping, no work.
  bool gone() const { return gone_; }

 private:
  void RunHost();

  Shared& shared_;
  const ProcessId id_;
  Device device_;
  Client client_;
  std::vector<std::shared_ptr<const Reply>> inbox_;
  Tick stopped_until_ = 0;
  bool was_stopped_ = false;
  bool killed_ = false;
  Tick torn_down_at_ = 0;
  bool gone_ = false;
};

}  // namespace quire::simulation

#endif  // QUIRE_TESTS_SIMULATION_PROCESS_H_
