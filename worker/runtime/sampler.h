// Choosing the next token from logits. Pure functions: the same arguments give the same token, so
// that a sequence computed again after preemption, in another batch or without any cache reads the
// same text.
#ifndef QUIRE_WORKER_RUNTIME_SAMPLER_H_
#define QUIRE_WORKER_RUNTIME_SAMPLER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "worker/model/model_config.h"

namespace quire::runtime {

using model::TokenId;

struct SamplingParams {
  // 0: greedy.
  float temperature = 0.0f;
  uint64_t seed = 0;
};

// What makes the choice at one place of one sample reproducible.
struct SamplePlace {
  // Index of the sample within its request.
  uint32_t sample = 0;
  // Position of the token to choose.
  uint32_t position = 0;
};

// The scores whose largest wins: the logits, or logits / temperature plus Gumbel noise that depends
// on seed, place and token only.
std::vector<float> Scores(std::span<const float> logits, const SamplingParams& params,
                          const SamplePlace& place);

// Index of the largest score; of equals the first.
TokenId Winner(std::span<const float> scores);

inline TokenId Sample(std::span<const float> logits, const SamplingParams& params,
                      const SamplePlace& place) {
  return params.temperature <= 0 ? Winner(logits) : Winner(Scores(logits, params, place));
}

// One live hypothesis of a beam search.
struct BeamState {
  double score = 0;  // sum of log probabilities
  std::span<const float> logits;
};

// A continuation: beam `parent` goes on with `token`.
struct BeamChoice {
  uint32_t parent = 0;
  TokenId token = 0;
  double score = 0;

  friend bool operator==(const BeamChoice&, const BeamChoice&) = default;
};

// The `width` best continuations, best first; of equal scores the lower parent, then the lower
// token.
std::vector<BeamChoice> SelectBeams(std::span<const BeamState> beams, uint32_t width);

// Score of one continuation, as SelectBeams computes it.
double BeamScore(const BeamState& beam, TokenId token);

}  // namespace quire::runtime

#endif  // QUIRE_WORKER_RUNTIME_SAMPLER_H_
