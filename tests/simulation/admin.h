// An administrator who pins, evicts, flushes, looks and ends workers at random, and holds the
// server to what a pin promises. Not thread-safe.
#ifndef QUIRE_TESTS_SIMULATION_ADMIN_H_
#define QUIRE_TESTS_SIMULATION_ADMIN_H_

#include <string>
#include <vector>

#include "cache_service/engine/cache_engine.h"
#include "tests/simulation/server.h"
#include "tests/simulation/shared.h"

namespace quire::simulation {

class Admin {
 public:
  Admin(Shared& shared, Server& server) : shared_(shared), server_(server) {}

  void Run();
  // Waits for no deadline.
  void EndPins();

 private:
  struct Pinned {
    std::string id;
    Epoch epoch = 0;
    uint64_t removals = 0;
    Tick until = 0;
    uint32_t name_space = 0;
    std::vector<TokenId> tokens;
    uint32_t pinned = 0;
  };

  void Pin();
  void Unpin();
  void CheckPins();
  void EvictPrefix();
  void Look();
  static PrefixSelector Select(const std::vector<TokenId>& tokens, uint32_t name_space);

  Shared& shared_;
  Server& server_;
  std::vector<Pinned> pins_;
};

}  // namespace quire::simulation

#endif  // QUIRE_TESTS_SIMULATION_ADMIN_H_
