// What travels between clients and the server.
#ifndef QUIRE_TESTS_SIMULATION_MESSAGE_H_
#define QUIRE_TESTS_SIMULATION_MESSAGE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache_service/base/error.h"
#include "cache_service/engine/step.h"
#include "cache_service/engine/worker_calls.h"
#include "tests/simulation/judge.h"
#include "tests/simulation/memory.h"

namespace quire::simulation {

using ProcessId = uint32_t;
// 0: not on a stream.
using StreamId = uint64_t;

// The operations of one step, with the memory that their spans point into.
struct StepContent {
  bool all_or_nothing = false;
  std::vector<Operation> operations;
  std::vector<std::vector<uint32_t>> numbers;
  std::vector<std::vector<SequenceHandle>> handles;
};

enum class Call : uint8_t { kAttach, kRenew, kDetach, kStep, kStreamEnd };

// A prefix that must be found once the request is handled, if nothing was taken out since.
struct PublicProbe {
  uint32_t name_space = 0;
  std::vector<TokenId> tokens;
  // Count of what was taken out of the tree on request when its first token was begun.
  uint64_t removals = 0;
  SequenceHandle holder = 0;
};

struct Request {
  Call call = Call::kStep;
  ProcessId process = 0;
  StreamId stream = 0;
  Tick sent_at = 0;
  LeaseId lease{};
  Epoch epoch = 0;
  StepNumber step = 0;
  StepNumber applied_step = 0;
  StepNumber completed_step = 0;
  std::shared_ptr<const StepContent> content{};
  AttachParams attach{};
  // Not handled later than this: the caller counts on it before it sends anything else.
  Tick deadline = ~Tick{0};
  std::optional<PublicProbe> probe{};
};

struct Reply {
  Call call = Call::kStep;
  ProcessId process = 0;
  StreamId stream = 0;
  // When its request was sent.
  Tick sent_at = 0;
  LeaseId lease{};
  StepNumber step = 0;
  Reason reason = Reason::kNone;
  std::string message{};
  // With STEP_OUT_OF_ORDER.
  StepNumber expected_step = 0;
  std::shared_ptr<const StepResult> answer{};
  AttachResult attach{};
  std::shared_ptr<PoolMemory> memory{};
  // Sometimes: the tables that the server has after this step, which the worker's must equal.
  std::shared_ptr<const std::vector<SequenceView>> tables{};
};

}  // namespace quire::simulation

#endif  // QUIRE_TESTS_SIMULATION_MESSAGE_H_
