// Replays a trace block by block, without a model and without memory.
#ifndef QUIRE_WORKER_RUNTIME_TRACE_REPLAY_H_
#define QUIRE_WORKER_RUNTIME_TRACE_REPLAY_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/client/cache_client.h"
#include "worker/runtime/trace.h"

namespace quire::runtime {

struct ReplayReport {
  uint64_t requests = 0;
  uint64_t requested_blocks = 0;
  uint64_t hit_blocks = 0;
  // Slots of all tables at their final length, and tokens in them. Where content is replayed by id
  // nothing is generated, so this is about the prompts only.
  uint64_t slots = 0;
  uint64_t tokens = 0;
  double seconds = 0;

  double hit_rate() const;
  double internal_waste() const;
};

// One request at a time: begin, commit, finish.
//
// A prompt with ids becomes kTraceIdTokens tokens per id that no other id contains, plus one token
// of its own at the end, so that the last token, which is always computed, costs no block; it needs
// blocks of kTraceIdTokens tokens. A prompt without ids becomes tokens of its own and its output is
// entered too. `limit` 0: the whole trace. The client must map no memory.
absl::StatusOr<ReplayReport> ReplayTrace(client::CacheClient& client,
                                         const std::vector<TraceRequest>& trace, uint64_t limit,
                                         const std::function<void(const ReplayReport&)>& progress);

// One line for the terminal.
std::string ToLine(const ReplayReport& report);
std::string ToText(const ReplayReport& report);
std::string ToJson(const ReplayReport& report);

}  // namespace quire::runtime

#endif  // QUIRE_WORKER_RUNTIME_TRACE_REPLAY_H_
