// What a user asks for and what he gets.
#ifndef QUIRE_WORKER_RUNTIME_REQUEST_H_
#define QUIRE_WORKER_RUNTIME_REQUEST_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "worker/client/types.h"
#include "worker/runtime/sampler.h"

namespace quire::runtime {

enum class Search : uint8_t {
  // `width` independent samples of the prompt (1: plain generation).
  kSamples,
  // The `width` best continuations by summed log probability.
  kBeam,
};

struct Request {
  uint64_t id = 0;
  std::vector<TokenId> prompt{};
  // Tokens to generate per result.
  uint32_t new_tokens = 16;
  Search search = Search::kSamples;
  uint32_t width = 1;
  SamplingParams sampling{};
  client::Namespace name_space{};
};

// One generated continuation.
struct Generated {
  std::vector<TokenId> tokens{};
  // Logits each token was chosen from, one after another; only if the scheduler records them.
  std::vector<float> logits{};
  // Beam search only.
  double score = 0;
};

// One round of a beam search: what was chosen among the beams of the round before.
struct BeamRound {
  std::vector<BeamChoice> choices{};
  // Logits of the beams before the choice, one after another; only if recorded.
  std::vector<float> logits{};
};

struct RequestResult {
  Request request{};
  absl::Status status{};
  // By sample, or best beam first.
  std::vector<Generated> outputs{};
  // Beam search only.
  std::vector<BeamRound> rounds{};
  // Prompt tokens that the first begin found in the cache.
  uint32_t reused_tokens = 0;
  uint32_t preemptions = 0;
  double seconds = 0;
  double seconds_to_first_token = 0;
};

}  // namespace quire::runtime

#endif  // QUIRE_WORKER_RUNTIME_REQUEST_H_
