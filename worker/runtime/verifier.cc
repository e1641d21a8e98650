#include "worker/runtime/verifier.h"

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace quire::runtime {

float VerifyTolerance(kernels::DType kv_dtype) {
  switch (kv_dtype) {
    case kernels::DType::kBF16:
      return 0.05f;
    case kernels::DType::kF16:
      return 0.01f;
    default:
      return 5e-4f;
  }
}

std::string VerifyReport::Summary() const {
  if (tokens == 0) return "verification: nothing to compare, no request gave a token";
  std::string text =
      absl::StrFormat("verification: %s (%d tokens, largest logit difference %.1e",
                      identical() ? "identical" : "DIFFERENT", tokens, largest_logit_difference);
  if (near_ties > 0) absl::StrAppend(&text, ", ", near_ties, " near ties");
  if (different_tokens > 0) absl::StrAppend(&text, ", ", different_tokens, " other tokens");
  if (different_logits > 0) absl::StrAppend(&text, ", ", different_logits, " other logit rows");
  if (!first_difference.empty()) absl::StrAppend(&text, "; ", first_difference);
  return text + ")";
}

void VerifyReport::Merge(const VerifyReport& other) {
  tokens += other.tokens;
  different_tokens += other.different_tokens;
  near_ties += other.near_ties;
  different_logits += other.different_logits;
  largest_logit_difference = std::max(largest_logit_difference, other.largest_logit_difference);
  if (first_difference.empty()) first_difference = other.first_difference;
}

absl::StatusOr<VerifyReport> VerifyResults(
    const std::vector<RequestResult>& results, uint32_t threads,
    const std::function<absl::StatusOr<std::unique_ptr<model::Transformer>>()>& make_model) {
  std::vector<absl::StatusOr<VerifyReport>> reports(threads, VerifyReport());
  const auto check = [&](uint32_t thread) -> absl::StatusOr<VerifyReport> {
    auto model = make_model();
    if (!model.ok()) return model.status();
    Verifier verifier(**model, VerifyTolerance((*model)->config().kv_dtype));
    for (size_t i = thread; i < results.size(); i += threads) {
      if (absl::Status status = verifier.Check(results[i]); !status.ok()) return status;
    }
    return verifier.report();
  };
  std::vector<std::thread> running;
  for (uint32_t thread = 0; thread < threads; ++thread) {
    running.emplace_back([&, thread] { reports[thread] = check(thread); });
  }
  for (std::thread& thread : running) thread.join();
  VerifyReport all;
  for (const absl::StatusOr<VerifyReport>& report : reports) {
    if (!report.ok()) return report.status();
    all.Merge(*report);
  }
  return all;
}

absl::Status Verifier::Check(const RequestResult& result) {
  if (!result.status.ok()) return absl::OkStatus();
  if (result.request.search == Search::kBeam) return CheckBeams(result);
  for (uint32_t sample = 0; sample < result.outputs.size(); ++sample) {
    const absl::Status status = CheckSample(result.request, result.outputs[sample], sample);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<float>> Verifier::Compute(model::ContiguousKv& kv,
                                                     const std::vector<TokenId>& tokens,
                                                     size_t first_wanted) {
  model::LaunchBatch batch;
  batch.Add(kv.length(), tokens.data(), static_cast<int32_t>(tokens.size()));
  for (size_t row = first_wanted; row < tokens.size(); ++row) {
    batch.logit_rows.push_back(static_cast<int32_t>(row));
  }
  if (absl::Status status = kv.Prepare(batch); !status.ok()) return status;
  std::vector<float> logits;
  if (absl::Status status = model_.Forward(batch, kv, logits); !status.ok()) return status;
  return logits;
}

absl::Status Verifier::CheckSample(const Request& request, const Generated& output,
                                   uint32_t sample) {
  std::vector<TokenId> tokens = request.prompt;
  tokens.insert(tokens.end(), output.tokens.begin(), output.tokens.end() - 1);
  model::ContiguousKv kv(model_.config());
  const size_t first = request.prompt.size() - 1;
  absl::StatusOr<std::vector<float>> logits = Compute(kv, tokens, first);
  if (!logits.ok()) return logits.status();
  const bool recorded = !output.logits.empty() || need_logits_;
  if (recorded && output.logits.size() != logits->size()) {
    return absl::FailedPreconditionError("the result has no recorded logits");
  }
  const auto width = static_cast<size_t>(model_.config().vocabulary);
  for (size_t i = 0; i < output.tokens.size(); ++i) {
    const std::string where = absl::StrCat("sample ", sample, " token ", i);
    const auto reference = std::span<const float>(*logits).subspan(i * width, width);
    if (recorded) {
      CompareLogits(request, std::span<const float>(output.logits).subspan(i * width, width),
                    reference, where);
    }
    const SamplePlace place{sample, static_cast<uint32_t>(request.prompt.size() + i)};
    const std::vector<float> scores = Scores(reference, request.sampling, place);
    const TokenId expected = Winner(scores);
    CompareChoice(request, expected == output.tokens[i],
                  double{scores[expected]} - double{scores[output.tokens[i]]}, where);
  }
  return absl::OkStatus();
}

// Follows the recorded choices with one contiguous cache per beam, copied whole at every fork.
absl::Status Verifier::CheckBeams(const RequestResult& result) {
  std::vector<Beam> beams;
  beams.push_back({model::ContiguousKv(model_.config()), result.request.prompt, {}, 0, {}});
  for (size_t round = 0; round < result.rounds.size(); ++round) {
    for (Beam& beam : beams) {
      absl::StatusOr<std::vector<float>> row = Compute(beam.kv, beam.next, beam.next.size() - 1);
      if (!row.ok()) return row.status();
      beam.logits = *std::move(row);
    }
    absl::Status status = CheckRound(result.request, result.rounds[round], round, beams);
    if (!status.ok()) return status;
  }
  for (size_t i = 0; i < beams.size(); ++i) {
    if (i < result.outputs.size() && beams[i].generated == result.outputs[i].tokens) continue;
    ++report_.different_tokens;
    Note(result.request, absl::StrCat("beam ", i, " reads otherwise"));
  }
  return absl::OkStatus();
}

absl::Status Verifier::CheckRound(const Request& request, const BeamRound& round, size_t number,
                                  std::vector<Beam>& beams) {
  const auto width = static_cast<size_t>(model_.config().vocabulary);
  const std::span<const float> recorded(round.logits);
  if (recorded.size() != beams.size() * width) {
    return absl::FailedPreconditionError("the result has no recorded logits");
  }
  std::vector<BeamState> states;
  for (size_t i = 0; i < beams.size(); ++i) {
    CompareLogits(request, recorded.subspan(i * width, width), beams[i].logits,
                  absl::StrCat("round ", number, " beam ", i));
    states.push_back({beams[i].score, beams[i].logits});
  }
  const std::vector<BeamChoice> expected = SelectBeams(states, request.width);
  std::vector<Beam> next;
  for (size_t i = 0; i < round.choices.size(); ++i) {
    const BeamChoice& chosen = round.choices[i];
    const double score = BeamScore(states[chosen.parent], chosen.token);
    const bool same = i < expected.size() && expected[i].parent == chosen.parent &&
                      expected[i].token == chosen.token;
    const double margin = i < expected.size() ? std::abs(expected[i].score - score) : INFINITY;
    CompareChoice(request, same, margin, absl::StrCat("round ", number, " choice ", i));
    const Beam& parent = beams[chosen.parent];
    next.push_back({parent.kv, {chosen.token}, parent.generated, score, {}});
    next.back().generated.push_back(chosen.token);
  }
  beams = std::move(next);
  return absl::OkStatus();
}

void Verifier::CompareLogits(const Request& request, std::span<const float> recorded,
                             std::span<const float> reference, const std::string& where) {
  double largest = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    const double difference = std::abs(double{recorded[i]} - double{reference[i]});
    // A NaN compares false with everything; it must count as different.
    largest = difference <= largest ? largest : difference;
    if (std::isnan(difference)) largest = INFINITY;
  }
  report_.largest_logit_difference = std::max(report_.largest_logit_difference, largest);
  if (largest <= double{tolerance_}) return;
  ++report_.different_logits;
  Note(request, absl::StrCat(where, " has logits that differ by ", largest));
}

void Verifier::CompareChoice(const Request& request, bool same, double margin,
                             const std::string& where) {
  ++report_.tokens;
  if (same) return;
  // Two scores move by at most the tolerance each; sampling divides both by the temperature.
  const double temperature = double{request.sampling.temperature};
  const double scale =
      request.search == Search::kSamples && temperature > 0 ? 1.0 / temperature : 1.0;
  if (margin <= 2 * double{tolerance_} * scale) {
    ++report_.near_ties;
    return;
  }
  ++report_.different_tokens;
  Note(request,
       absl::StrCat(where, " is another token; the reference prefers its own by ", margin));
}

void Verifier::Note(const Request& request, const std::string& what) {
  if (!report_.first_difference.empty()) return;
  report_.first_difference = absl::StrCat("first in request ", request.id, ": ", what);
}

}  // namespace quire::runtime
