// What happens when, drawn from a seed.
#ifndef QUIRE_TESTS_CHAOS_SCRIPT_H_
#define QUIRE_TESTS_CHAOS_SCRIPT_H_

#include <chrono>
#include <functional>
#include <map>
#include <random>
#include <string>

#include "tests/chaos/fleet.h"
#include "tests/support/operator_calls.h"

namespace quire::chaos {

struct ScriptOptions {
  uint64_t seed = 1;
  std::chrono::milliseconds duration{15'000};
  bool worker_faults = true;
  bool server_faults = true;
};

// Draws a fault every few hundred milliseconds and does it; what it takes away comes back a moment
// later. Not thread-safe.
class Script {
 public:
  Script(const ScriptOptions& options, Fleet& fleet);

  void Run();
  // Everything that was taken away is there again.
  void Restore();

  // How often each fault was done.
  const std::map<std::string, int>& done() const { return done_; }

 private:
  using Time = std::chrono::steady_clock::time_point;

  struct Fault {
    const char* name;
    int weight;
    // False: it does not apply now.
    bool (Script::*act)();
  };

  std::vector<Fault> Faults() const;
  uint64_t Number(uint64_t low, uint64_t high);
  void Later(uint64_t low_ms, uint64_t high_ms, std::function<void()> act);
  void DoDue();
  void DrawFault();

  bool KillWorker();
  bool StopWorker();
  bool EndWorker();
  bool KillServer();
  bool TerminateServer();
  bool StopServer();
  bool Audit();
  bool Flush();

  // A worker that runs; -1: the drawn one does not.
  int RunningWorker();

  const ScriptOptions options_;
  Fleet& fleet_;
  OperatorCalls calls_;
  std::mt19937_64 random_;
  std::vector<Fault> faults_;
  std::multimap<Time, std::function<void()>> later_;
  bool server_usable_ = true;
  std::map<std::string, int> done_;
};

}  // namespace quire::chaos

#endif  // QUIRE_TESTS_CHAOS_SCRIPT_H_
