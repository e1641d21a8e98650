// Where requests come from.
#ifndef QUIRE_WORKER_RUNTIME_WORKLOAD_H_
#define QUIRE_WORKER_RUNTIME_WORKLOAD_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cache_service/base/clock.h"
#include "worker/runtime/request.h"

namespace quire::runtime {

// A source of requests; deterministic for its options. Not thread-safe.
class Workload {
 public:
  virtual ~Workload() = default;

  // The next request, if one can be sent now; some wait for an earlier result.
  virtual std::optional<Request> Next() = 0;

  // A request of this workload is finished.
  virtual void OnResult(const RequestResult&) {}

  // No request will come any more.
  virtual bool exhausted() const { return false; }
};

struct WorkloadOptions {
  uint32_t vocabulary = 512;
  uint32_t max_sequence_tokens = 4096;
  uint64_t seed = 1;
  // Of the system prompts, so that several workers can share them. 0: the seed.
  uint64_t prompts_seed = 0;
  float temperature = 0.7f;
  // Users who talk at the same time (chat), or requests in flight (others).
  uint32_t users = 8;
  // Different system prompts (chat) or prompts (samples, beam).
  uint32_t prompts = 3;
  uint32_t prompt_tokens = 96;
  uint32_t turns = 4;
  uint32_t new_tokens = 24;
  // Samples per prompt, or beams.
  uint32_t width = 4;
  // How long a chat user reads an answer before the next turn; needs a clock that outlives the
  // workload. Null: no time at all.
  Duration think{};
  const Clock* clock = nullptr;
};

// Users pick one of a few system prompts and talk for some turns; each prompt repeats the whole
// conversation, generated tokens included.
std::unique_ptr<Workload> MakeChat(const WorkloadOptions& options);
// Several samples, or a beam search, for each prompt.
std::unique_ptr<Workload> MakeSamples(const WorkloadOptions& options);
std::unique_ptr<Workload> MakeBeam(const WorkloadOptions& options);

}  // namespace quire::runtime

#endif  // QUIRE_WORKER_RUNTIME_WORKLOAD_H_
