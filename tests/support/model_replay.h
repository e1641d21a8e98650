// Runs of engine and model that were recorded, to be repeated and made shorter.
#ifndef QUIRE_TESTS_SUPPORT_MODEL_REPLAY_H_
#define QUIRE_TESTS_SUPPORT_MODEL_REPLAY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/model_run.h"

namespace quire::testing {

// What one call drew.
struct RecordedAction {
  std::vector<uint32_t> drawn{};
  uint32_t left_out = 0;
};

// The first one sets up the run.
using Recording = std::vector<RecordedAction>;

// Repeats recorded actions. Returns what differs at last, or "". `log` gets the calls.
std::string Replay(const ModelRunOptions& run_options, const Recording& recording,
                   std::string* log = nullptr);

// Leaves out actions and operations as long as a difference of the same kind remains; at most
// `most_calls` calls are replayed for it.
Recording Minimize(const ModelRunOptions& run_options, Recording recording,
                   uint64_t most_calls = 400'000);

}  // namespace quire::testing

#endif  // QUIRE_TESTS_SUPPORT_MODEL_REPLAY_H_
