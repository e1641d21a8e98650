#include "worker/runtime/sampler.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "kernels/hash.h"

namespace quire::runtime {
namespace {

// Uniform in (0, 1), never 0 or 1.
double Uniform(uint64_t bits) { return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53; }

double LogSum(std::span<const float> logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  return largest + std::log(sum);
}

}  // namespace

std::vector<float> Scores(std::span<const float> logits, const SamplingParams& params,
                          const SamplePlace& place) {
  std::vector<float> scores(logits.begin(), logits.end());
  if (params.temperature <= 0) return scores;
  const uint64_t base = kernels::Mix64(kernels::Mix64(params.seed + kernels::kGolden) ^
                                       (uint64_t{place.sample} << 32 | place.position));
  for (size_t token = 0; token < scores.size(); ++token) {
    const double uniform = Uniform(kernels::Mix64(base + token * kernels::kGolden));
    scores[token] = static_cast<float>(double{scores[token]} / double{params.temperature} -
                                       std::log(-std::log(uniform)));
  }
  return scores;
}

TokenId Winner(std::span<const float> scores) {
  return static_cast<TokenId>(std::max_element(scores.begin(), scores.end()) - scores.begin());
}

std::vector<BeamChoice> SelectBeams(std::span<const BeamState> beams, uint32_t width) {
  std::vector<BeamChoice> choices;
  for (uint32_t parent = 0; parent < beams.size(); ++parent) {
    const BeamState& beam = beams[parent];
    const double base = beam.score - LogSum(beam.logits);
    for (size_t token = 0; token < beam.logits.size(); ++token) {
      choices.push_back({parent, static_cast<TokenId>(token), base + double{beam.logits[token]}});
    }
  }
  const size_t count = std::min<size_t>(width, choices.size());
  std::partial_sort(choices.begin(), choices.begin() + static_cast<std::ptrdiff_t>(count),
                    choices.end(), [](const BeamChoice& a, const BeamChoice& b) {
                      return std::tuple(-a.score, a.parent, a.token) <
                             std::tuple(-b.score, b.parent, b.token);
                    });
  choices.resize(count);
  return choices;
}

double BeamScore(const BeamState& beam, TokenId token) {
  return beam.score - LogSum(beam.logits) + double{beam.logits[token]};
}

}  // namespace quire::runtime
