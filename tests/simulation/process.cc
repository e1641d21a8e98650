#include "tests/simulation/process.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace quire::simulation {

Process::Process(Shared& shared, const WorkerPlan& plan, ProcessId id, uint64_t incarnation)
    : shared_(shared),
      id_(id),
      device_(shared.plan, id, plan.name, shared.random, shared.judge),
      client_(shared, plan, id, incarnation, device_) {
  shared_.judge.Trace("process ", id, " of ", plan.name, " starts, incarnation ", incarnation);
}

void Process::Stop(Tick until) {
  shared_.judge.Trace("process ", id_, " is stopped until ", until);
  stopped_until_ = until;
  was_stopped_ = true;
}

void Process::Kill() {
  if (killed_) return;
  shared_.judge.Trace("process ", id_, " is killed");
  killed_ = true;
  client_.Die();
  torn_down_at_ = shared_.judge.now() + shared_.random.Below(60);
}

void Process::Run() {
  if (gone_) return;
  device_.Run(shared_.judge.now());
  if (killed_) {
    if (shared_.judge.now() < torn_down_at_) return;
    device_.Cut();
    client_.EndMappings();
    gone_ = true;
  } else if (!stopped()) {
    RunHost();
  }
}

void Process::RunHost() {
  if (std::exchange(was_stopped_, false) && shared_.random.OneIn(2)) client_.FinishRound();
  for (std::shared_ptr<const Reply>& reply : std::exchange(inbox_, {})) {
    client_.Receive(std::move(reply));
  }
  client_.Run();
  if (client_.exited()) gone_ = true;
}

}  // namespace quire::simulation
